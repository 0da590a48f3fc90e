import { JSON_FLAG, readLine } from '@svc/command-line'
import type { Command } from '@svc/core/contracts'
import { pinSeen } from '../notes.ts'
import { standings } from '../standing.ts'
import { configuredServer, knownOf, openStore, runningId, useOf } from './ground.ts'
import { PORT_FLAG, portOf, USAGE } from './line.ts'
import { lookAt } from './look.ts'
import { linesOf } from './tools.ts'

/** `svc mcp approve <name> [<tool>...]`: shows what changed and takes it as meant; running servers use it at once. */
const approve: Command = async call => {
  const { values, positionals } = readLine(call.args, USAGE.approve, { ...JSON_FLAG, ...PORT_FLAG }, [
    1,
    Number.POSITIVE_INFINITY,
  ])
  const [name = '', ...names] = positionals
  const server = await configuredServer(call, name)
  const use = useOf(call, 'mcp approve')
  const running = await runningId(call, portOf(values.port, USAGE.approve), use)
  const store = await openStore(call, use)
  const { pins, catalogue } = await knownOf(store, running, server, use)
  const { tools } = catalogue ?? (await lookAt(call, store, server, use))
  const isMeant = (tool: string) => names.length === 0 || names.includes(tool)
  const changed = standings(tools, pins, server.entry).filter(one => one.standing === 'changed' && isMeant(one.name))
  // what is pinned is what is shown here, even if the server has changed it again meanwhile
  await pinSeen(store, server, tools, names.length === 0 ? undefined : names, use)
  if (values.json) return call.print(JSON.stringify({ server: name, approved: changed }))
  for (const tool of changed) for (const line of linesOf(tool)) call.print(line)
  call.note(changed.length === 0 ? `nothing of ${name} had changed` : `approved: ${changed.map(one => one.name).join(', ')}`)
}

export default approve
