"""One throw-away certificate authority and one key per control plane, made before anything starts.

The servers could create their own, but RSA keys take long, and a kubeconfig could be written only when they
are up.
"""

import ipaddress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID


@dataclass(frozen=True, slots=True)
class Certificates:
    """Paths of PEM files."""

    authority: Path
    serving: Path
    serving_key: Path
    service_account_key: Path


def make_certificates(folder: Path) -> Certificates:
    """An authority, a serving certificate for 127.0.0.1 and the key that signs ServiceAccount tokens."""
    now = datetime.now(UTC)
    authority_key = ec.generate_private_key(ec.SECP256R1())
    serving_key = ec.generate_private_key(ec.SECP256R1())
    authority_name = _name("node-maintenance-reconciler tests")
    key_id = x509.SubjectKeyIdentifier.from_public_key(authority_key.public_key())

    def draft(subject: x509.Name, key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(authority_name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(hours=1))
            .not_valid_after(now + timedelta(days=30))
        )

    authority = (
        draft(authority_name, authority_key)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(key_id, critical=False)
        .add_extension(_authority_usage(), critical=True)
        .sign(authority_key, hashes.SHA256())
    )
    names = [
        x509.IPAddress(ipaddress.ip_address("127.0.0.1")),
        x509.DNSName("localhost"),
        x509.DNSName("kubernetes.default.svc"),
    ]
    # A client may show the serving certificate, too: tests of client certificates need no second one.
    usages = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
    serving = (
        draft(_name("127.0.0.1"), serving_key)
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.ExtendedKeyUsage(usages), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(key_id), critical=False)
        .sign(authority_key, hashes.SHA256())
    )
    certificates = Certificates(
        authority=folder / "authority.crt",
        serving=folder / "serving.crt",
        serving_key=folder / "serving.key",
        service_account_key=folder / "service-account.key",
    )
    certificates.authority.write_bytes(authority.public_bytes(serialization.Encoding.PEM))
    certificates.serving.write_bytes(serving.public_bytes(serialization.Encoding.PEM))
    _write_key(certificates.serving_key, serving_key)
    _write_key(certificates.service_account_key, ec.generate_private_key(ec.SECP256R1()))
    return certificates


def _name(common_name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _authority_usage() -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        key_cert_sign=True,
        crl_sign=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _write_key(path: Path, key: ec.EllipticCurvePrivateKey) -> None:
    path.touch(mode=0o600)
    path.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.TraditionalOpenSSL,
            serialization.NoEncryption(),
        )
    )
