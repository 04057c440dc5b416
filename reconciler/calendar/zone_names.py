"""Names of time zones that are no IANA names: those of Windows, as Azure shows them, and abbreviations."""

from __future__ import annotations

import re
from datetime import datetime
from functools import cache
from zoneinfo import ZoneInfo, available_timezones

# From windowsZones.xml of Unicode's CLDR, the zone of each territory 001; each name ends in " Standard Time".
# CLDR keeps the first name of a zone. These are the names of today: not each machine has the old ones.
_WINDOWS = dict(
    line.strip().split("=")
    for line in """
    AUS Central=Australia/Darwin
    AUS Eastern=Australia/Sydney
    Afghanistan=Asia/Kabul
    Alaskan=America/Anchorage
    Alberta=America/Edmonton
    Aleutian=America/Adak
    Altai=Asia/Barnaul
    Arab=Asia/Riyadh
    Arabian=Asia/Dubai
    Arabic=Asia/Baghdad
    Argentina=America/Argentina/Buenos_Aires
    Astrakhan=Europe/Astrakhan
    Atlantic=America/Halifax
    Aus Central W.=Australia/Eucla
    Azerbaijan=Asia/Baku
    Azores=Atlantic/Azores
    Bahia=America/Bahia
    Bangladesh=Asia/Dhaka
    Belarus=Europe/Minsk
    Bougainville=Pacific/Bougainville
    British Columbia=America/Vancouver
    Canada Central=America/Regina
    Cape Verde=Atlantic/Cape_Verde
    Caucasus=Asia/Yerevan
    Cen. Australia=Australia/Adelaide
    Central America=America/Guatemala
    Central Asia=Asia/Bishkek
    Central Brazilian=America/Cuiaba
    Central Europe=Europe/Budapest
    Central European=Europe/Warsaw
    Central Pacific=Pacific/Guadalcanal
    Central=America/Chicago
    Chatham Islands=Pacific/Chatham
    China=Asia/Shanghai
    Cuba=America/Havana
    Dateline=Etc/GMT+12
    E. Africa=Africa/Nairobi
    E. Australia=Australia/Brisbane
    E. Europe=Europe/Chisinau
    E. South America=America/Sao_Paulo
    Easter Island=Pacific/Easter
    Eastern=America/New_York
    Egypt=Africa/Cairo
    Ekaterinburg=Asia/Yekaterinburg
    FLE=Europe/Kyiv
    Fiji=Pacific/Fiji
    GMT=Europe/London
    GTB=Europe/Bucharest
    Georgian=Asia/Tbilisi
    Greenland=America/Nuuk
    Greenwich=Atlantic/Reykjavik
    Haiti=America/Port-au-Prince
    Hawaiian=Pacific/Honolulu
    India=Asia/Kolkata
    Iran=Asia/Tehran
    Israel=Asia/Jerusalem
    Jordan=Asia/Amman
    Kaliningrad=Europe/Kaliningrad
    Korea=Asia/Seoul
    Libya=Africa/Tripoli
    Line Islands=Pacific/Kiritimati
    Lord Howe=Australia/Lord_Howe
    Magadan=Asia/Magadan
    Magallanes=America/Punta_Arenas
    Manitoba=America/Winnipeg
    Marquesas=Pacific/Marquesas
    Mauritius=Indian/Mauritius
    Middle East=Asia/Beirut
    Montevideo=America/Montevideo
    Morocco=Africa/Casablanca
    Mountain=America/Denver
    Myanmar=Asia/Yangon
    N. Central Asia=Asia/Novosibirsk
    Namibia=Africa/Windhoek
    Nepal=Asia/Kathmandu
    New Zealand=Pacific/Auckland
    Newfoundland=America/St_Johns
    Norfolk=Pacific/Norfolk
    North Asia East=Asia/Irkutsk
    North Asia=Asia/Krasnoyarsk
    North Korea=Asia/Pyongyang
    Omsk=Asia/Omsk
    Pacific SA=America/Santiago
    Pacific=America/Los_Angeles
    Pakistan=Asia/Karachi
    Paraguay=America/Asuncion
    Qyzylorda=Asia/Qyzylorda
    Romance=Europe/Paris
    Russian=Europe/Moscow
    SA Eastern=America/Cayenne
    SA Pacific=America/Bogota
    SA Western=America/La_Paz
    SE Asia=Asia/Bangkok
    Saint Pierre=America/Miquelon
    Sakhalin=Asia/Sakhalin
    Samoa=Pacific/Apia
    Sao Tome=Africa/Sao_Tome
    Saratov=Europe/Saratov
    Singapore=Asia/Singapore
    South Africa=Africa/Johannesburg
    South Sudan=Africa/Juba
    Sri Lanka=Asia/Colombo
    Sudan=Africa/Khartoum
    Syria=Asia/Damascus
    Taipei=Asia/Taipei
    Tasmania=Australia/Hobart
    Tocantins=America/Araguaina
    Tokyo=Asia/Tokyo
    Tomsk=Asia/Tomsk
    Tonga=Pacific/Tongatapu
    Transbaikal=Asia/Chita
    Turkey=Europe/Istanbul
    Turks And Caicos=America/Grand_Turk
    US Eastern=America/Indiana/Indianapolis
    US Mountain=America/Phoenix
    Ulaanbaatar=Asia/Ulaanbaatar
    Venezuela=America/Caracas
    Vladivostok=Asia/Vladivostok
    Volgograd=Europe/Volgograd
    W. Australia=Australia/Perth
    W. Central Africa=Africa/Lagos
    W. Europe=Europe/Berlin
    W. Mongolia=Asia/Hovd
    West Asia=Asia/Tashkent
    West Bank=Asia/Hebron
    West Pacific=Pacific/Port_Moresby
    Yakutsk=Asia/Yakutsk
    Yukon=America/Whitehorse
    """.strip().splitlines()
)
_OFFSET = re.compile(r"(?:UTC|GMT)?([+-])(1[0-4]|0?[0-9])(?::?00)?", re.IGNORECASE)
_FIRST = (
    "Europe/Berlin",
    "America/New_York",
    "America/Chicago",
    "America/Denver",
    "America/Los_Angeles",
    "Europe/London",
    "Asia/Shanghai",
    "Pacific/Honolulu",
)
_MOST = 4


def meant_by(word: str) -> tuple[str, ...]:
    """Return the IANA zones that such a name, or that of a city, may mean; none for any other name."""
    windows = re.sub(r" (Standard|Daylight) Time$", "", word.strip(), flags=re.IGNORECASE).casefold()
    for name, zone in _WINDOWS.items():
        if windows == name.casefold():
            return (zone,)
    city = re.sub(r"[ _]+", "_", word.strip()).casefold()
    zones = _abbreviations().get(word.strip().upper(), ()) or [
        zone for zone in available_timezones() if "/" in zone and zone.rpartition("/")[2].casefold() == city
    ]
    ranks = {zone: rank for rank, zone in enumerate(_FIRST)}
    return tuple(sorted(zones, key=lambda zone: (ranks.get(zone, len(ranks)), zone)))[:_MOST]


def fixed_offset(word: str) -> str:
    """Return the IANA zone of an offset such as `UTC+1`, empty if it is none. The sign of Etc is reversed."""
    found = _OFFSET.fullmatch(word.strip())
    if found is None:
        return ""
    hours = int(found[2])
    return f"Etc/GMT{'-' if found[1] == '+' else '+'}{hours}" if hours else "UTC"


@cache
def _abbreviations() -> dict[str, tuple[str, ...]]:
    """Return the zones of Windows' list by the abbreviations that they use in winter and in summer."""
    found: dict[str, tuple[str, ...]] = {}
    for key in dict.fromkeys((*_WINDOWS.values(), "Europe/Dublin")):
        try:
            zone = ZoneInfo(key)
        except (KeyError, ValueError, OSError):
            continue
        for month in (1, 7):
            name = datetime(2026, month, 1, tzinfo=zone).tzname() or ""
            if name.isalpha() and key not in found.get(name, ()):
                found[name] = (*found.get(name, ()), key)
    return found
