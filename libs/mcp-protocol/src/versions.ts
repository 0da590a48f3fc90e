/** The newest version of the protocol. It is stateless: each request carries version, client and capabilities. */
export const MODERN_VERSION = '2026-07-28'

/** Versions with a handshake and sessions, newest first. */
export const LEGACY_VERSIONS: readonly string[] = ['2025-11-25', '2025-06-18', '2025-03-26', '2024-11-05', '2024-10-07']

/** All versions that svc supports, newest first. */
export const PROTOCOL_VERSIONS: readonly string[] = [MODERN_VERSION, ...LEGACY_VERSIONS]

/** Whether a version is stateless. Versions are dates, so they compare as strings. */
export const isModern = (version: string): boolean => version >= MODERN_VERSION

/** Keys of `params._meta` in a stateless request: version, client, capabilities of the client and log level. */
export const META = {
  version: 'io.modelcontextprotocol/protocolVersion',
  client: 'io.modelcontextprotocol/clientInfo',
  capabilities: 'io.modelcontextprotocol/clientCapabilities',
  logLevel: 'io.modelcontextprotocol/logLevel',
} as const

/** Key in the `_meta` of a result that lists the hidden characters that svc removed, with their counts: `U+200B × 3`. */
export const HIDDEN_KEY = 'svc/hidden_characters'

/** Error codes of JSON-RPC and of the protocol. */
export const RPC = {
  parse: -32_700,
  invalidRequest: -32_600,
  methodUnknown: -32_601,
  invalidParams: -32_602,
  internal: -32_603,
  /** A header is missing or contradicts the body. The server did not execute the request. */
  headerMismatch: -32_020,
} as const
