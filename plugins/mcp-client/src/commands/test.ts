import { JSON_FLAG, lineInvalid, oneLine, readLine } from '@svc/command-line'
import type { Command, Json } from '@svc/core/contracts'
import { type Step, trial } from '../trial.ts'
import { configuredServer, openStore, useOf } from './ground.ts'
import { USAGE } from './line.ts'
import { openClient } from './look.ts'

const OPTIONS = { tool: { type: 'string' }, args: { type: 'string' }, ...JSON_FLAG } as const

/** `svc mcp test <name>`: step by step over a connection of its own; 1 where a step fails. */
const test: Command = async call => {
  const { values, positionals } = readLine(call.args, USAGE.test, OPTIONS, [1, 1])
  if (values.args !== undefined && values.tool === undefined) throw lineInvalid('--args needs --tool', USAGE.test)
  const server = await configuredServer(call, positionals[0] ?? '')
  const use = useOf(call, 'mcp test')
  const store = await openStore(call, use)
  const open = () => openClient(call, store, server, use)
  const asked = values.tool === undefined ? {} : { call: { tool: values.tool, args: argsOf(values.args ?? '{}') } }
  const steps: Step[] = []
  for await (const step of trial({ server, open, ...asked, signal: call.signal })) {
    steps.push(step)
    if (!values.json) call.print(lineOf(step))
  }
  const failed = steps.some(step => step.error !== undefined)
  if (values.json) call.print(JSON.stringify({ server: server.entry.name, ok: !failed, steps }))
  return failed ? 1 : 0
}

export default test

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
    // said below
  }
  throw lineInvalid('--args must be a JSON object', USAGE.test)
}
