/** The limits of a server, with their defaults. */
export const LIMITS = {
  /** Tools; a longer list is cut, and the server is `degraded`. */
  tools: 1_000,
  /** Pages of one list. */
  pages: 100,
  /** Levels of a tool's schemas. */
  schemaDepth: 64,
  /** Bytes of one tool as JSON. */
  toolBytes: 262_144,
  /** Bytes of one message, and so of a result. */
  resultBytes: 10_485_760,
  /** Concurrent calls; further ones wait. */
  calls: 64,
  /** Concurrent calls of one tool. */
  callsPerTool: 8,
  /** Messages a second without a request, averaged over ten seconds; above it the connection is closed. */
  noticesPerSecond: 1_000,
  /** Concurrent calls that wait for the answer of a user. */
  parked: 64,
  /** Milliseconds that a call waits for that answer. */
  parkedMs: 300_000,
}

export type McpLimits = Readonly<typeof LIMITS>
