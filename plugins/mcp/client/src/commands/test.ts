import { Flags, JSON_FLAG, SvcCommand } from '@svc/cli/command'
import { lineInvalid, oneLine } from '@svc/plugin-kit'
import type { Json } from '@svc/core/contracts'
import { checkSteps, type Step } from './check-steps.ts'
import { configuredServer, openClient, openStore, SERVER_ARG, contextOf } from './shared.ts'

/** `svc mcp test <name>`: connects step by step from this command; exits with 1 where a step fails. */
export class McpTest extends SvcCommand {
  static override summary = 'Test the connection to an MCP server step by step'
  static override description =
    'Resolves, connects, authenticates, shakes hands and lists the tools over a connection of its own, and prints the time of each step. Exits with 1 if a step fails.'
  static override examples = [`<%= config.bin %> <%= command.id %> files --tool read_file --args '{"path": "/data/notes.txt"}'`]
  static override args = SERVER_ARG
  static override flags = {
    tool: Flags.string({ summary: 'Tool to call at the end', helpValue: '<tool>' }),
    args: Flags.string({ summary: 'Arguments of the call', helpValue: '<json>', dependsOn: ['tool'] }),
    ...JSON_FLAG,
  }

  async run(): Promise<number> {
    const { args, flags } = await this.parse(McpTest)
    const server = await configuredServer(this, args.name)
    const ctx = contextOf(this, 'mcp test')
    const store = await openStore(this, ctx)
    const open = () => openClient(this, store, server, ctx)
    const asked = flags.tool === undefined ? {} : { call: { tool: flags.tool, args: argsOf(flags.args ?? '{}') } }
    const steps: Step[] = []
    for await (const step of checkSteps({ server, open, ...asked, signal: this.signal })) {
      steps.push(step)
      if (!flags.json) this.print(lineOf(step))
    }
    const failed = steps.some(step => step.error !== undefined)
    if (flags.json) this.print(JSON.stringify({ server: server.entry.name, ok: !failed, steps }))
    return failed ? 1 : 0
  }
}

const WIDTH = 10

const lineOf = ({ step, ms, found = '', error }: Step): string =>
  error
    ? `✗ ${step.padEnd(WIDTH)} ${ms} ms  ${error.class}: ${oneLine(error.message, 300)}`
    : `✓ ${step.padEnd(WIDTH)} ${ms} ms  ${oneLine(found, 300)}`.trimEnd()

function argsOf(text: string): { readonly [name: string]: Json | undefined } {
  try {
    const read = JSON.parse(text) as unknown
    if (typeof read === 'object' && read !== null && !Array.isArray(read)) return read as { [name: string]: Json }
  } catch {
    // reported below
  }
  throw lineInvalid('--args must be a JSON object', 'mcp test <name> --tool <tool> --args <json>')
}
