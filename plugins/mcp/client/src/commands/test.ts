import { Flags, JSON_FLAG, PORT_FLAG } from '@svc/cli/command'
import type { Json } from '@svc/core/contracts'
import { lineInvalid, oneLine } from '@svc/plugin-kit'
import type { TestStep } from '../ownership/connection-test.ts'
import { McpCommand, SERVER_ARG } from './shared.ts'

/** `svc mcp test <name>`: connects step by step over a connection of its own; exits with 1 if a step fails. */
export class McpTest extends McpCommand {
  static override summary = 'Test the connection to an MCP server step by step'
  static override description =
    'Resolves, connects, authenticates, shakes hands and lists the tools over a connection of its own, and prints the time of each step. The running server does this; if none runs, this command does. Exits with 1 if a step fails.'
  static override examples = [`<%= config.bin %> <%= command.id %> files --tool read_file --args '{"path": "/data/notes.txt"}'`]
  static override args = SERVER_ARG
  static override flags = {
    tool: Flags.string({ summary: 'Tool to call at the end', helpValue: '<tool>' }),
    args: Flags.string({ summary: 'Arguments of the call', helpValue: '<json>', dependsOn: ['tool'] }),
    ...PORT_FLAG,
    ...JSON_FLAG,
  }

  async run(): Promise<number> {
    const { args, flags } = await this.parse(McpTest)
    const server = await this.serverNamed(args.name)
    const call = flags.tool === undefined ? {} : { call: { tool: flags.tool, args: argsOf(flags.args ?? '{}') } }
    const steps: TestStep[] = []
    for await (const step of this.ask<TestStep>(flags, { do: 'test', server: args.name, ...call })) {
      steps.push(step)
      if (!flags.json) this.print(lineOf(step))
    }
    const failed = steps.some(step => step.error !== undefined)
    if (flags.json) this.print(JSON.stringify({ server: server.entry.name, ok: !failed, steps }))
    return failed ? 1 : 0
  }
}

const WIDTH = 10

const lineOf = ({ step, ms, found = '', error }: TestStep): string =>
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
