import { messageOf, type SvcError, svcError } from '@svc/core'
import type { ErrorCode, PublicError } from '@svc/core/contracts'
import { API_CODES, type ApiCode, type Explained, explained, explain as explainPublicError, toPublicError } from '@svc/api-types'

/** An error as the API answers it: the only form that leaves the process. */
export interface ErrorAnswer extends Explained {
  readonly status: number
}

const STATUS = {
  MISSING_FIELD: 400,
  INVALID_VALUE: 400,
  CURSOR_INVALID: 400,
  AUTHENTICATION_FAILED: 401,
  FORBIDDEN: 403,
  NOT_FOUND: 404,
  MODEL_NOT_FOUND: 404,
  TOOL_NOT_FOUND: 404,
  METHOD_NOT_ALLOWED: 405,
  CONFLICT: 409,
  PRECONDITION_FAILED: 412,
  PAYLOAD_TOO_LARGE: 413,
  UNSUPPORTED_MEDIA_TYPE: 415,
  RATE_LIMITED: 429,
  TOOL_EXECUTION_FAILED: 500,
  INTERNAL_ERROR: 500,
  PROVIDER_NOT_FOUND: 503,
  PROVIDER_ERROR: 503,
  UNAVAILABLE: 503,
  TIMEOUT: 504,
} as const satisfies Record<ApiCode, number>

/** The table from error code to HTTP status, published for other plugins. */
export const errorCodes: readonly ErrorCode[] = (Object.keys(STATUS) as ApiCode[]).map(code => ({
  code,
  status: STATUS[code],
  meaning: API_CODES[code],
}))

/** INVALID_VALUE with the reason `not found` becomes 404. */
const statusOf = ({ error_code: code, details }: Explained['record']) =>
  code === 'INVALID_VALUE' && details.reason === 'not found' ? 404 : STATUS[code]

const withStatus = (explanation: Explained): ErrorAnswer => ({ ...explanation, status: statusOf(explanation.record) })

const answer = (...parts: Parameters<typeof explained>) => withStatus(explained(...parts))

/** Returns the API answer for the error of a service. */
export const explain = (explanation: PublicError, requestId: string): ErrorAnswer =>
  withStatus(explainPublicError(explanation, requestId))

/** Returns the API answer for any thrown value. */
export const explainThrown = (error: unknown, requestId: string): ErrorAnswer => explain(toPublicError(error), requestId)

/** Returns the answer to bytes that are not a valid HTTP request. `code` is the error code of Node's parser. */
export function explainMalformed(code: string | undefined): ErrorAnswer {
  if (code === 'HPE_HEADER_OVERFLOW') return answer('PAYLOAD_TOO_LARGE', 'the headers are too large', { field: 'headers' })
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT')
    return answer('INVALID_VALUE', 'the request was not received in time', { field: 'request', reason: 'too slow' })
  return answer('INVALID_VALUE', 'the request is not valid HTTP', { field: 'request', reason: 'not valid HTTP' })
}

export const missingField = (missing: readonly string[], required: readonly string[], provided: readonly string[]) =>
  svcError('MISSING_FIELD', `Missing required field${missing.length > 1 ? 's' : ''}: ${missing.join(', ')}`, {
    details: { required_fields: required, provided_fields: provided },
  })

export const invalidValue = (field: string, reason: string, more: { value?: unknown; allowed?: readonly unknown[] } = {}) =>
  svcError('INVALID_VALUE', `${field} ${reason}`, { details: { field, reason, ...more } })

export const payloadTooLarge = (limit: number) =>
  svcError('PAYLOAD_TOO_LARGE', `the body is larger than ${limit} bytes`, { details: { limit } })

export const unsupportedMediaType = (reason: string, supported = 'application/json') =>
  svcError('UNSUPPORTED_MEDIA_TYPE', `${reason}; send ${KINDS[supported] ?? 'it'} with Content-Type: ${supported}`, {
    details: { reason, supported: [supported] },
  })
const KINDS: Readonly<Record<string, string>> = {
  'application/json': 'JSON',
  'application/x-www-form-urlencoded': 'a form',
  'text/plain': 'text',
}

/** `off`: why the server does not serve the paths around this one. */
export const routeUnknown = (method: string, path: string, guides: readonly string[], off?: string) => {
  const see = guides.length === 0 ? {} : { details: { see: guides } }
  return svcError('NOT_FOUND', `there is no route ${method} ${path.slice(0, 200)}${off === undefined ? '' : `: ${off}`}`, see)
}

/** `cluster.roles` of this server has no `http`. */
export const roleMissing = () =>
  svcError('NOT_FOUND', 'this server has no role "http": it serves only its health and its metrics')

export const methodNotAllowed = (method: string, allowed: readonly string[]) =>
  svcError('METHOD_NOT_ALLOWED', `the path does not support ${method}; use ${allowed.join(' or ')}`, { details: { allowed } })

export const authenticationFailed = (message = 'a credential is required') => svcError('AUTHENTICATION_FAILED', message)

export const scopeMissing = (scope: string) =>
  svcError('FORBIDDEN', `the credential lacks the scope ${scope}`, { details: { scope, reason: 'the scope is missing' } })

export const hostForbidden = (host: string) =>
  svcError('FORBIDDEN', 'the server does not accept this Host header; server.allowed_hosts lists the accepted names', {
    details: { field: 'host', value: host.slice(0, 200) },
  })

export const originForbidden = (origin: string) =>
  svcError('FORBIDDEN', 'the server does not accept this Origin; server.cors.origins lists the accepted origins', {
    details: { field: 'origin', value: origin.slice(0, 200) },
  })

export const tooMany = (limit: number, window: number, retryAfter: number, what = 'requests') =>
  svcError('RATE_LIMITED', `too many ${what}: the limit is ${limit} in ${window} s; try again in ${retryAfter} s`, {
    details: { limit, window, retry_after: retryAfter },
  })

const RETRY_SECONDS = 1

/** `window` is 0, because a concurrency limit has no time window: the next request passes as soon as another one ends. */
export const tooManyOpen = (what: 'requests' | 'streams', limit: number) =>
  svcError('RATE_LIMITED', `${limit} ${what} are already open; wait until one of them ends`, {
    details: { limit, window: 0, retry_after: RETRY_SECONDS },
  })

const COUNT_RETRY_MS = 5_000

/** The other servers of the cluster go on counting, so this one cannot count alone. */
export const countUnknown = (what: 'requests' | 'streams') =>
  svcError('UNAVAILABLE', `this server cannot count the open ${what} of its cluster now; try again, or ask another server`, {
    details: { retryAfterMs: COUNT_RETRY_MS },
    hint: 'Check the connection of this server to the database, or to Redis with `redis.use: [bus]`',
  })

const BODIES_RETRY_MS = 1_000

export const tooManyBodies = () =>
  svcError('UNAVAILABLE', 'the bodies of open requests use all of server.body_memory; try again later', {
    details: { retryAfterMs: BODIES_RETRY_MS },
  })

export const tooManyValues = (limit: number) =>
  svcError('PAYLOAD_TOO_LARGE', `the body has more than ${limit} values`, { details: { limit, unit: 'values' } })

export const stopping = () => svcError('UNAVAILABLE', 'the server is stopping')

export const routeInvalid = (name: string, what: string) => svcError('ROUTE_INVALID', `the route ${name} ${what}`)

export const answerInvalid = (what: string) => svcError('ROUTE_ANSWER_INVALID', `the route answered ${what}`)

export const errorFormatInvalid = (name: string, plugin: string | undefined, what: string) =>
  svcError('ERROR_FORMAT_INVALID', `the format of errors "${name}" ${what}`, {
    ...(plugin === undefined ? {} : { plugin }),
    hint: 'Set path to a path without parameters, such as /v1. If you set header, write its name in lower case',
  })

export const formattedInvalid = (what: string) => svcError('ERROR_FORMAT_INVALID', `the format of errors returned ${what}`)

export const noScheme = () =>
  svcError('AUTHENTICATION_WITHOUT_SCHEME', 'server.auth.enabled is true, but no loaded plugin checks credentials', {
    hint: 'Add "@svc/plugin-auth-api-key" or "@svc/plugin-auth-bearer" to "plugins", or set server.auth.enabled to false and keep server.host at 127.0.0.1',
  })

export const schemeFailed = (name: string, plugin: string | undefined, cause: unknown) =>
  svcError(
    'SCHEME_FAILED',
    `the credential scheme "${name}"${plugin === undefined ? '' : ` of ${plugin}`} cannot start: ${messageOf(cause)}`,
    {
      cause,
      where: prepareOf(name),
      ...(plugin === undefined ? {} : { plugin }),
      hint: `Fix this plugin, disable it (${howToDisable(plugin)}), or set server.auth.enabled to false`,
    }
  )

export const schemeInvalid = (name: string, plugin: string | undefined, what: string) =>
  svcError('SCHEME_INVALID', `the credential scheme "${name}" ${what}`, {
    ...(plugin === undefined ? {} : { plugin }),
    hint: 'Declare the headers that the scheme reads and its challenge (headers: ["x-my-key"], challenge: "MyKey"); return { id, scopes } with an id that is not reserved',
  })

/** Passes on the error that a scheme's `prepare` threw, with its code, details and hint. */
export const schemeUnready = (code: string, name: string, plugin: string | undefined, cause: unknown) => {
  const { details = {}, hint } = Object(cause) as Partial<SvcError>
  const named = { ...(plugin === undefined ? {} : { plugin }), ...(hint === undefined ? {} : { hint }) }
  return svcError(code, messageOf(cause), { cause, details, where: prepareOf(name), ...named })
}

/** The method that failed: the error rises through the hook in which svc calls it. */
const prepareOf = (name: string) => `auth_schemes.${name}.prepare`

const howToDisable = (plugin = '<name>') =>
  `run svc plugins disable ${plugin} if it is installed, otherwise set enabled: false in "plugins"`

/** `where` and `hint` go to the log only: the client must not learn which scheme was asked. */
export const schemeSilent = (scheme: { readonly name: string; readonly plugin: string | undefined } | undefined, ms: number) =>
  svcError('UNAVAILABLE', 'the credential could not be checked in time', {
    where: `the credential scheme "${scheme?.name}" (${scheme?.plugin}) did not answer within ${ms} ms`,
    hint: `Fix this plugin or the server that it queries, disable it (${howToDisable(scheme?.plugin)}), or raise server.auth.timeout_ms`,
  })

export const proxyInvalid = (entry: string) =>
  svcError('PROXY_INVALID', `server.trusted_proxies: "${entry}" is not an address or a network`, {
    hint: 'Write an address (10.0.0.7, fd00::7) or a network (10.0.0.0/8, fd00::/8)',
  })

export const corsCredentials = () =>
  svcError(
    'CORS_INVALID',
    'server.cors.credentials with the origin * lets every web page send requests with the credentials of its reader',
    {
      hint: 'List the origins in server.cors.origins, or set server.cors.credentials to false',
    }
  )

const SSL_HINT = 'Run svc serve --ssl-cert cert.pem --ssl-key key.pem, or set server.ssl.cert and server.ssl.key'

export const sslIncomplete = (key: 'cert' | 'key') =>
  svcError('SSL_INCOMPLETE', `TLS needs a certificate and its key: server.ssl.${key} is missing`, { hint: SSL_HINT })

export const certificateUnreadable = (file: string, cause: unknown) =>
  svcError('CERTIFICATE_UNREADABLE', `${file} cannot be read: ${messageOf(cause)}`, { cause, hint: SSL_HINT })

export const certificateInvalid = (file: string, reason: string) =>
  svcError('CERTIFICATE_INVALID', `${file} is not a valid certificate: ${reason}`, {
    hint: "Use a certificate in PEM format (-----BEGIN CERTIFICATE-----), the server's own first",
  })

export const keyInvalid = (file: string, reason: string) =>
  svcError('KEY_INVALID', `${file} is not a valid private key: ${reason}`, {
    hint: 'Use a private key in PEM format (-----BEGIN PRIVATE KEY-----)',
  })

export const keyProtected = (file: string) =>
  svcError('KEY_PROTECTED', `the key in ${file} is protected by a password`, {
    hint: `Remove the password and make the file readable by this user only: openssl pkey -in ${file} -out key.pem`,
  })

export const keyMismatch = (cert: string, key: string) =>
  svcError('KEY_MISMATCH', `the key in ${key} does not belong to the certificate in ${cert}`, {
    hint: "Use the key that the certificate was requested with; in a chain, put the server's own certificate first",
  })

export const portTaken = (host: string, port: number, cause: unknown) =>
  svcError('PORT_TAKEN', `${host}:${port} is in use by another program`, {
    cause,
    details: { host, port },
    hint: 'Stop that program, or choose another port: svc serve --port 9000, SVC_SERVER__PORT=9000, or server.port in svc.config',
  })

export const listenFailed = (host: string, port: number, cause: unknown) =>
  svcError('LISTEN_FAILED', `cannot listen on ${host}:${port}: ${messageOf(cause)}`, {
    cause,
    details: { host, port },
    hint: 'Set server.host to an address of this machine; use a port from 1024 up, or run with the right to open a lower port',
  })
