// Opens and closes the control socket of made-up servers in one home: node control.ts <home> <first process id> <rounds>. Prints what went wrong.
import { findServers, listenControl, type ServerInfo } from '@svc/runtime'

const [home = '', first = '', rounds = ''] = process.argv.slice(2)
const problems: string[] = []
for (let port = Number(first); port < Number(first) + Number(rounds); port++) {
  try {
    const info = async () => ({ port }) as ServerInfo
    await using _socket = await listenControl(home, { pid: port, id: `${port}-x` }, { info } as never)
    const found = await findServers(home)
    if (!found.some(server => server.info.port === port)) problems.push('not found')
    for (const server of found) server[Symbol.dispose]()
  } catch (error) {
    problems.push(String(error))
  }
}
// a server that could not listen would keep this process
process.stdout.write(JSON.stringify(problems), () => process.exit())
