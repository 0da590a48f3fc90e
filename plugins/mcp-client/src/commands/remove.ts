import { JSON_FLAG, readLine } from '@svc/command-line'
import { shownPath } from '@svc/core'
import type { Command } from '@svc/core/contracts'
import { homeFile } from '../home-file.ts'
import { removeFromFile } from '../home-edit.ts'
import { loginKey, NOTES, pinsKey, switchKey } from '../space.ts'
import { configuredServer, openStore, takeUp, useOf } from './ground.ts'
import { USAGE } from './line.ts'

/** `svc mcp remove <name>`: takes it out of mcp.yaml, and forgets what was approved of it and who had logged in. */
const remove: Command = async call => {
  const { values, positionals } = readLine(call.args, USAGE.remove, JSON_FLAG, [1, 1])
  const [name = ''] = positionals
  const server = await configuredServer(call, name)
  const file = homeFile(call.home)
  await removeFromFile(file, name, `it stands in ${server.where}: take it out there`)
  if (values.json) call.print(JSON.stringify({ removed: name, file }))
  else call.print(`removed ${name} from ${shownPath(file)}`)
  const use = useOf(call, 'mcp remove')
  const code = await takeUp(call, use)
  // after the servers let go of it: else they would note down anew what is forgotten here
  const store = await openStore(call, use)
  const keys = [switchKey(server), pinsKey(server), loginKey(server)]
  await store.batch(
    keys.map(key => ({ op: 'delete', collection: NOTES, key })),
    {},
    use
  )
  return code
}

export default remove
