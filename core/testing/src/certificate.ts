import { generateKeyPairSync, type KeyObject, sign } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'

/** A self-signed certificate for localhost with its key, as PEM. */
export interface TestCertificate {
  readonly cert: string
  readonly key: string
  /** The key, encrypted with a password. */
  readonly locked: string
}

// A minimal ASN.1 encoder, so that tests need no external tool.
const der = (tag: number, ...parts: (Buffer | string)[]): Buffer => {
  const content = Buffer.concat(parts.map(part => Buffer.from(part)))
  const { length } = content
  const size = length < 128 ? [length] : length < 256 ? [0x81, length] : [0x82, length >> 8, length & 255]
  return Buffer.concat([Buffer.from([tag, ...size]), content])
}
const sequence = (...parts: (Buffer | string)[]) => der(0x30, ...parts)
const oid = (hex: string) => der(6, Buffer.from(hex, 'hex'))
const time = (ms: number) => der(0x17, `${new Date(ms).toISOString().replaceAll(/[-:T]/g, '').slice(2, 14)}Z`)
const DAY = 86_400_000
const YES = der(1, Buffer.from([255]))
const ECDSA = sequence(oid('2a8648ce3d040302'))

function extensions(): Buffer {
  const names = sequence(der(0x82, 'localhost'), der(0x87, Buffer.from([127, 0, 0, 1])))
  const alternative = sequence(oid('551d11'), der(4, names))
  const authority = sequence(oid('551d13'), YES, der(4, sequence(YES)))
  return der(0xa3, sequence(alternative, authority))
}

function certificate(publicKey: KeyObject, privateKey: KeyObject): string {
  const name = sequence(der(0x31, sequence(oid('550403'), der(12, 'localhost'))))
  const serial = der(2, Buffer.from([1, ...crypto.getRandomValues(new Uint8Array(8))]))
  const valid = sequence(time(Date.now() - DAY), time(Date.now() + DAY))
  const spki = publicKey.export({ type: 'spki', format: 'der' })
  const body = sequence(der(0xa0, der(2, Buffer.from([2]))), serial, ECDSA, name, valid, name, spki, extensions())
  const whole = sequence(body, ECDSA, der(3, Buffer.from([0]), sign('sha256', body, privateKey)))
  return pem(whole)
}

const pem = (bytes: Buffer) =>
  `-----BEGIN CERTIFICATE-----\n${bytes
    .toString('base64')
    .match(/.{1,64}/g)!
    .join('\n')}\n-----END CERTIFICATE-----\n`

/** Creates a certificate that is valid for a day. */
export function makeCertificate(): TestCertificate {
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const form = { type: 'pkcs8', format: 'pem' } as const
  return {
    cert: certificate(publicKey, privateKey),
    key: privateKey.export(form).toString(),
    locked: privateKey.export({ ...form, cipher: 'aes-256-cbc', passphrase: 'secret' }).toString(),
  }
}

/** Writes both files into a folder and returns their paths as configuration values. */
export async function writeCertificate(folder: string, { cert, key }: { cert: string; key: string }) {
  const files = { cert: join(folder, 'cert.pem'), key: join(folder, 'key.pem') }
  await Promise.all([writeFile(files.cert, cert), writeFile(files.key, key)])
  return files
}
