import { JSON_FLAG, oneLine, readLine } from '@svc/command-line'
import type { Command, McpTool } from '@svc/core/contracts'
import { changePins } from '../notes.ts'
import { standings, withFirstSights } from '../standing.ts'
import { configuredServer, knownOf, openStore, runningId, useOf } from './ground.ts'
import { PORT_FLAG, portOf, USAGE } from './line.ts'
import { lookAt } from './look.ts'

/** `svc mcp tools <name>`: its tools as the running server has read them, else read now; what changed, and what was taken out of their words. */
const tools: Command = async call => {
  const { values, positionals } = readLine(call.args, USAGE.tools, { ...JSON_FLAG, ...PORT_FLAG }, [1, 1])
  const server = await configuredServer(call, positionals[0] ?? '')
  const use = useOf(call, 'mcp tools')
  const running = await runningId(call, portOf(values.port, USAGE.tools), use)
  const store = await openStore(call, use)
  const known = await knownOf(store, running, server, use)
  const read = known.catalogue ?? (await lookAt(call, store, server, use))
  // seen first here, as by a server that connects
  if (!known.catalogue) await changePins(store, server, pins => withFirstSights(pins, read.tools), use)
  const all = standings(read.tools, known.pins, server.entry)
  if (values.json) return call.print(JSON.stringify({ server: server.entry.name, tools: all, left_out: read.faults }))
  for (const tool of all) for (const line of linesOf(tool)) call.print(line)
  for (const fault of read.faults) call.note(`left out: ${oneLine(fault)}`)
  if (all.some(one => one.standing === 'changed'))
    call.note(`changed tools are out of use until they are approved: svc mcp approve ${server.entry.name}`)
}

export default tools

const MARKS = { good: '', changed: ' (changed)', hidden: ' (left out by the configuration)' } as const

/** A line of a difference is bounded where it is made: none of it may be missed here. */
const LONGEST = 10_000

/** A tool as a person reads it. */
export function linesOf({ name, description, standing, difference = [], stripped = [] }: McpTool): string[] {
  return [
    `${name}${MARKS[standing]}  ${oneLine(description, 120)}`.trimEnd(),
    ...difference.map(line => `  ${oneLine(line, LONGEST)}`),
    ...stripped.map(place => `  hidden characters taken out: ${oneLine(place)}`),
  ]
}
