import { lineInvalid } from '@svc/command-line'

export const USAGE = {
  list: 'mcp list [--port <port>] [--json]',
  add: 'mcp add <name> <url> | -- <command> [<argument>...]',
  remove: 'mcp remove <name> [--json]',
  test: 'mcp test <name> [--tool <tool>] [--args <json>] [--json]',
  tools: 'mcp tools <name> [--port <port>] [--json]',
  approve: 'mcp approve <name> [<tool>...] [--json]',
  enable: 'mcp enable <name> [--json]',
  disable: 'mcp disable <name> [--json]',
  import: 'mcp import <file or -> [--json]',
  login: 'mcp login <name> [--port <port>]',
} as const

export const PORT_FLAG = { port: { type: 'string' } } as const

/** A port as given. Throws COMMAND_LINE_INVALID. */
export function portOf(given: string | undefined, usage: string): number | undefined {
  if (given === undefined) return undefined
  const port = Number(given)
  if (Number.isInteger(port) && port > 0 && port < 65_536) return port
  throw lineInvalid(`--port must be a port, was "${given}"`, usage)
}
