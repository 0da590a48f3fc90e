import { codeOf, type SvcError } from '@svc/core'
import type { FailureParts } from './failure.ts'
import { modelFailure } from './failure.ts'

interface SocketWords {
  readonly words: string
  readonly hint?: (provider: string) => string
  readonly failure?: FailureParts
}

const BASE_URL = (provider: string) => `start the server that providers.${provider}.base_url names, or fix the address`
const HOST_NAME = (provider: string) => `check providers.${provider}.base_url and the network`
const NOT_HTTP: SocketWords = { words: 'the upstream sent something that is not HTTP', hint: BASE_URL }
const BROKEN: SocketWords = { words: 'the connection to the upstream broke' }
const UNREACHABLE: SocketWords = { words: 'the upstream cannot be reached', hint: HOST_NAME }
const LATE: SocketWords = { words: 'the upstream did not answer in time', failure: { kind: 'timeout' } }
const CLOSED: SocketWords = { words: 'the provider was closed', failure: { kind: 'network', retryable: false } }

const SOCKET: Readonly<Record<string, SocketWords>> = {
  ECONNREFUSED: { words: 'the upstream refused the connection', hint: BASE_URL },
  ENOTFOUND: { words: 'the host of the upstream cannot be found', hint: HOST_NAME },
  EAI_AGAIN: { words: 'the host of the upstream cannot be found now', hint: HOST_NAME },
  EHOSTUNREACH: UNREACHABLE,
  ENETUNREACH: UNREACHABLE,
  ETIMEDOUT: { ...LATE, hint: HOST_NAME },
  UND_ERR_CONNECT_TIMEOUT: { ...LATE, words: 'the upstream took no connection in time', hint: HOST_NAME },
  UND_ERR_HEADERS_TIMEOUT: LATE,
  UND_ERR_BODY_TIMEOUT: LATE,
  UND_ERR_HEADERS_OVERFLOW: NOT_HTTP,
  UND_ERR_DESTROYED: CLOSED,
  UND_ERR_CLOSED: CLOSED,
  PROVIDER_CLOSED: CLOSED,
}

const CERTIFICATE = /^(CERT_|ERR_TLS_|UNABLE_TO_|SELF_SIGNED_|DEPTH_ZERO_|ERR_SSL_|HOSTNAME_MISMATCH)/
const UNTRUSTED: SocketWords = {
  words: 'no trusted TLS connection to the upstream',
  hint: provider => `check providers.${provider}.base_url, or trust its certificate: NODE_EXTRA_CA_CERTS=<file>`,
  failure: { kind: 'network', retryable: false },
}

/** The failure that a broken connection stands for. Says no address: the words reach whoever asked. */
export function socketFailure(provider: string, error: unknown): SvcError {
  const code = codeOf(error) ?? codeOf((error as { errors?: unknown[] } | undefined)?.errors?.[0]) ?? ''
  const { words, hint, failure = { kind: 'network' } } = wordsOf(code)
  return modelFailure(provider, failure, /^E[A-Z_]+$/.test(code) ? `${words} (${code})` : words, hint?.(provider))
}

function wordsOf(code: string): SocketWords {
  if (Object.hasOwn(SOCKET, code)) return SOCKET[code]!
  if (code.startsWith('HPE_')) return NOT_HTTP
  return CERTIFICATE.test(code) ? UNTRUSTED : BROKEN
}
