import { createPrivateKey, type KeyObject, X509Certificate } from 'node:crypto'
import { type FSWatcher, watch } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'
import { type CallContext, codeOf, type Log, messageOf } from '@svc/core'
import type { Listener } from '@svc/core/contracts'
import type { SslConfig } from './config.ts'
import { certificateInvalid, certificateUnreadable, keyInvalid, keyMismatch, keyProtected, sslIncomplete } from './errors.ts'

/** A certificate (with its intermediate certificates) and its key, as PEM. */
export interface Certificate {
  readonly cert: Buffer
  readonly key: Buffer
}

/** Reads and checks both files. Throws SSL_INCOMPLETE, CERTIFICATE_UNREADABLE, CERTIFICATE_INVALID, KEY_INVALID, KEY_PROTECTED, KEY_MISMATCH. */
export async function readCertificate({ cert, key }: SslConfig): Promise<Certificate> {
  if (cert === undefined || key === undefined) throw sslIncomplete(cert === undefined ? 'cert' : 'key')
  const pair = { cert: await read(cert), key: await read(key) }
  const leaf = attempt(
    () => new X509Certificate(pair.cert),
    error => certificateInvalid(cert, messageOf(error))
  )
  if (!leaf.checkPrivateKey(privateKey(pair.key, key))) throw keyMismatch(cert, key)
  attempt(
    // an import would load TLS when any server starts
    () => process.getBuiltinModule('node:tls').createSecureContext(pair),
    error => certificateInvalid(cert, messageOf(error))
  )
  return pair
}

const read = (file: string) =>
  readFile(file).catch((error: unknown) => {
    throw certificateUnreadable(resolve(file), error)
  })

function attempt<T>(work: () => T, toError: (error: unknown) => Error): T {
  try {
    return work()
  } catch (error) {
    throw toError(error)
  }
}

const PROTECTED = /ENCRYPTED/

function privateKey(pem: Buffer, file: string): KeyObject {
  return attempt(
    () => createPrivateKey(pem),
    error =>
      codeOf(error) === 'ERR_MISSING_PASSPHRASE' || PROTECTED.test(pem.toString('latin1'))
        ? keyProtected(file)
        : keyInvalid(file, messageOf(error))
  )
}

/** Keeps the last valid certificate for other workers of this server, in the memory of the supervisor. */
export interface CertificateKeeper {
  keep(certificate: Certificate): Promise<void>
  kept(): Promise<Certificate | undefined>
}

/** Without a listener that keeps certificates, nothing is kept. */
export function createKeeper(ssl: SslConfig, listener: Listener | undefined, lasting: CallContext): CertificateKeeper {
  const files = [ssl.cert, ssl.key].map(file => resolve(file ?? ''))
  return {
    // plain arrays with their own memory, because a small Buffer is a view of a shared pool
    keep: async ({ cert, key }) =>
      listener?.keepCertificate?.({ files, cert: new Uint8Array(cert), key: new Uint8Array(key) }, lasting),
    async kept() {
      const found = await listener?.keptCertificate?.(lasting)
      if (found === undefined || found.files.join('\n') !== files.join('\n')) return undefined
      return { cert: Buffer.from(found.cert), key: Buffer.from(found.key) }
    },
  }
}

/** Reads the certificate, or else returns the last valid one that another worker has used. Throws the errors of `readCertificate`. */
export async function firstCertificate(ssl: SslConfig, keeper: CertificateKeeper, log: Log): Promise<Certificate> {
  let certificate: Certificate
  try {
    certificate = await readCertificate(ssl)
  } catch (err) {
    const kept = await keeper.kept()
    if (!kept) throw err
    log.error({ err }, 'the certificate on disk is not usable; this worker uses the last valid certificate')
    return kept
  }
  await keeper.keep(certificate)
  return certificate
}

interface WatchDependencies {
  readonly ssl: SslConfig
  readonly first: Certificate
  /** Installs the new certificate. */
  readonly take: (next: Certificate) => void
  readonly log: Log
}

/** Delay between the last change and reading the files: programs write the two files one after the other. */
const SETTLE_MS = 100
/** Interval for folders without change events: network drives, links that change in a parent folder. */
const LOOK_MS = 60_000

/** Reloads the certificate when its files change. An invalid certificate is logged once, and the old one stays in use. */
export function watchCertificate({ ssl, first, take, log }: WatchDependencies): Disposable {
  let current = first
  let lastProblem = ''
  let settling: NodeJS.Timeout | undefined
  const look = async () => {
    try {
      const next = await readCertificate(ssl)
      lastProblem = ''
      if (next.cert.equals(current.cert) && next.key.equals(current.key)) return
      take(next)
      current = next
      log.info({ cert: ssl.cert, until: new X509Certificate(next.cert).validTo }, 'a new certificate is in use')
    } catch (err) {
      if (messageOf(err) !== lastProblem)
        log.error({ err }, 'the certificate on disk is not usable; the server keeps the old certificate')
      lastProblem = messageOf(err)
    }
  }
  const changed = () => {
    clearTimeout(settling)
    settling = setTimeout(() => void look(), SETTLE_MS)
  }
  const watchers = foldersOf(ssl).flatMap(folder => watchFolder(folder, changed, log))
  const timer = setInterval(() => void look(), LOOK_MS).unref()
  return {
    [Symbol.dispose]() {
      clearTimeout(settling)
      clearInterval(timer)
      for (const watcher of watchers) watcher.close()
    },
  }
}

const foldersOf = ({ cert, key }: SslConfig) => [...new Set([cert!, key!].map(file => dirname(resolve(file))))]

function watchFolder(folder: string, changed: () => void, log: Log): FSWatcher[] {
  try {
    return [watch(folder, { persistent: false }, changed).on('error', err => log.warn({ err, folder }, BLIND))]
  } catch (err) {
    log.warn({ err, folder }, BLIND)
    return []
  }
}
const BLIND = 'cannot watch the certificate files for changes; the server checks them once a minute'
