"""Certificates for a test: an authority, and what it signs. Nothing trusts them elsewhere."""

from __future__ import annotations

import ipaddress
import ssl
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


@dataclass(frozen=True, slots=True)
class Pair:
    """Paths of a certificate and its key, in PEM."""

    certificate: Path
    key: Path


class Authority:
    """Signs certificates into a folder. `bundle`: its own."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _name("Frazil test authority")
        signed = self._signed(self._name, self._key, is_authority=True, host="")
        self.bundle = folder / "authority.pem"
        self.bundle.write_bytes(signed.public_bytes(serialization.Encoding.PEM))

    def issue(self, name: str, *, host: str = "127.0.0.1", passphrase: str = "") -> Pair:
        """Issue a certificate for a host's address. `passphrase`: the key is encrypted with it."""
        key = ec.generate_private_key(ec.SECP256R1())
        signed = self._signed(_name(name), key, is_authority=False, host=host)
        pair = Pair(self._folder / f"{name}.pem", self._folder / f"{name}.key")
        pair.certificate.write_bytes(signed.public_bytes(serialization.Encoding.PEM))
        pair.key.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.BestAvailableEncryption(passphrase.encode())
                if passphrase
                else serialization.NoEncryption(),
            )
        )
        return pair

    def server_context(self, pair: Pair, *, wants_client: bool = False) -> ssl.SSLContext:
        """Return what a server listens with; `wants_client`: it asks for a certificate of ours."""
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(pair.certificate, pair.key)
        if wants_client:
            context.verify_mode = ssl.CERT_REQUIRED
            context.load_verify_locations(self.bundle)
        return context

    def _signed(
        self, name: x509.Name, key: ec.EllipticCurvePrivateKey, *, is_authority: bool, host: str
    ) -> x509.Certificate:
        now = datetime.now(UTC)
        builder = (
            x509.CertificateBuilder()
            .subject_name(name)
            .issuer_name(self._name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(days=1))
            .not_valid_after(now + timedelta(days=1))
            .add_extension(x509.BasicConstraints(is_authority, None), critical=True)
        )
        if host:
            address = x509.IPAddress(ipaddress.ip_address(host))
            builder = builder.add_extension(x509.SubjectAlternativeName([address]), critical=False)
        return builder.sign(self._key, hashes.SHA256())


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])
