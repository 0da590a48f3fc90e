import { createPrivateKey, X509Certificate } from 'node:crypto'
import { readFile, stat } from 'node:fs/promises'
import { messageOf } from '@svc/core'
import { fail, type Finding, ok, warn } from './finding.ts'

/** The section `server.ssl`, as far as it is looked at. */
export interface Ssl {
  readonly enabled: boolean
  readonly cert?: string
  readonly key?: string
}

const SOON_DAYS = 21
const DAY_MS = 86_400_000
const NAME = 'tls'
const HINT = 'fix server.ssl.cert and server.ssl.key: PEM files, the key without a password'

const UNUSED = 'it is off, although server.ssl names a certificate or a key: what is sent can be read on the way'

/** Certificate and key: there, of one pair, valid for a while, the key for its owner's eyes. Nothing where TLS is off and neither is named. */
export async function certificateFindings({ enabled, cert, key }: Ssl): Promise<Finding[]> {
  if (!enabled) return cert === undefined && key === undefined ? [] : [warn(NAME, UNUSED, 'set server.ssl.enabled to true')]
  if (cert === undefined || key === undefined) return [fail(NAME, 'server.ssl needs both cert and key', HINT)]
  try {
    const leaf = new X509Certificate(await readFile(cert))
    const pair = leaf.checkPrivateKey(createPrivateKey(await readFile(key)))
    if (!pair) return [fail(NAME, `${key} is not the key of ${cert}`, HINT)]
    const { mode } = await stat(key)
    return [
      validity(leaf),
      ...(mode & 0o007 ? [warn(NAME, `everybody on this machine may read ${key}`, `chmod 600 ${key}`)] : []),
    ]
  } catch (error) {
    return [fail(NAME, messageOf(error), HINT)]
  }
}

function validity({
  validFromDate,
  validToDate,
  validTo,
  validFrom,
  subject,
  subjectAltName = subject,
}: X509Certificate): Finding {
  const renew = 'renew the certificate; changed files are taken up without a restart'
  const days = Math.floor((validToDate.getTime() - Date.now()) / DAY_MS)
  if (validFromDate.getTime() > Date.now())
    return fail(NAME, `the certificate is valid only from ${validFrom}`, 'set the clock, or wait')
  if (days < 0) return fail(NAME, `the certificate ended on ${validTo}`, renew)
  if (days < SOON_DAYS) return warn(NAME, `the certificate ends in ${days} days, on ${validTo}`, renew)
  return ok(NAME, `${subjectAltName.replaceAll('\n', ' ')}, valid for ${days} days`)
}
