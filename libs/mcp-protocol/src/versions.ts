/** The newest version of the protocol: stateless, each request says everything about itself. */
export const MODERN_VERSION = '2026-07-28'

/** Versions with a handshake and sessions, newest first. */
export const LEGACY_VERSIONS: readonly string[] = ['2025-11-25', '2025-06-18', '2025-03-26', '2024-11-05', '2024-10-07']

/** All that this service speaks, newest first. */
export const PROTOCOL_VERSIONS: readonly string[] = [MODERN_VERSION, ...LEGACY_VERSIONS]

/** Whether a version is of the stateless era: versions are dates. */
export const isModern = (version: string): boolean => version >= MODERN_VERSION

/** Keys of `params._meta` by which a stateless request says who asks, in what version, and what it can be asked for. */
export const META = {
  version: 'io.modelcontextprotocol/protocolVersion',
  client: 'io.modelcontextprotocol/clientInfo',
  capabilities: 'io.modelcontextprotocol/clientCapabilities',
  logLevel: 'io.modelcontextprotocol/logLevel',
} as const

/** Key in the `_meta` of a result that lists the hidden characters that svc removed, with their counts: `U+200B × 3`. */
export const HIDDEN_KEY = 'svc/hidden_characters'

/** Error codes of the protocol that are no errors of JSON-RPC. */
export const RPC = {
  parse: -32_700,
  invalidRequest: -32_600,
  methodUnknown: -32_601,
  invalidParams: -32_602,
  internal: -32_603,
  /** A header disagrees with the body, or lacks: what was sent was not carried out. */
  headerMismatch: -32_020,
} as const
