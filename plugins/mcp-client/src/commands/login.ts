import { lineInvalid, readLine } from '@svc/command-line'
import type { Command } from '@svc/core/contracts'
import { configuredServer, openStore, useOf } from './ground.ts'
import { portOf, PORT_FLAG, USAGE } from './line.ts'
import { logIn } from './look.ts'

/** `svc mcp login <name>`: shows the page where a person logs in and waits for the answer; running servers connect anew. */
const login: Command = async call => {
  const { values, positionals } = readLine(call.args, USAGE.login, PORT_FLAG, [1, 1])
  const server = await configuredServer(call, positionals[0] ?? '')
  const { name, url, api_key_env } = server.entry
  if (url === undefined) throw lineInvalid(`${name} is a program of this machine: there is nothing to log in to`, USAGE.login)
  if (api_key_env !== undefined) throw lineInvalid(`${name} is given the key of ${api_key_env}`, USAGE.login)
  const use = useOf(call, 'mcp login')
  const store = await openStore(call, use)
  const show = (page: URL) => {
    call.note('open this page in a browser of this machine:')
    call.print(page.href)
  }
  await logIn(store, server, { show, port: portOf(values.port, USAGE.login) ?? 0 }, use)
  call.note(`logged in to ${name}`)
}

export default login
