import { JSON_FLAG, readLine } from '@svc/command-line'
import type { CommandCall } from '@svc/core/contracts'
import { putSwitch } from '../notes.ts'
import { configuredServer, openStore, useOf } from './ground.ts'
import { USAGE } from './line.ts'

/** Switches a server on or off; running servers see it in the store, and it lasts. */
export async function switchServer(call: CommandCall, word: 'enable' | 'disable'): Promise<void> {
  const { values, positionals } = readLine(call.args, USAGE[word], JSON_FLAG, [1, 1])
  const server = await configuredServer(call, positionals[0] ?? '')
  const use = useOf(call, `mcp ${word}`)
  await putSwitch(await openStore(call, use), server, word === 'enable', use)
  const { name } = server.entry
  if (values.json) return call.print(JSON.stringify({ [`${word}d`]: name }))
  call.print(`${name} is ${word}d`)
}
