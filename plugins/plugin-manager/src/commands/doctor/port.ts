import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { codeOf, messageOf } from '@svc/core'
import { findServers } from '@svc/core/processes'
import { fail, type Finding, ok, warn } from './finding.ts'

const ANSWER_MS = 2_000
const ANY: Readonly<Record<string, string>> = { '0.0.0.0': '127.0.0.1', '::': '::1' }

/** Whether the server could listen: asked by knocking, for nothing listens here. */
export async function portFinding(host: string, port: number, home: string): Promise<Finding> {
  const place = `${host}:${port}`
  if (port === 0) return ok('port', 'any free one')
  const closed = port < (await firstFreeForAll()) && process.getuid?.() !== 0
  if (closed)
    return fail(
      'port',
      `${place} is for root alone`,
      'take a higher one and put a proxy before it, or give node CAP_NET_BIND_SERVICE'
    )
  const answer = await knock(ANY[host] ?? host, port)
  if (answer === 'ECONNREFUSED') return ok('port', `${place} is free`)
  if (answer !== 'open')
    return warn(
      'port',
      `whether ${place} is free cannot be told: ${answer}`,
      'see that server.host is an address of this machine'
    )
  const owner = await ownerOf(port, home)
  if (owner !== undefined) return ok('port', `${place} is taken by the server of this svc home (process ${owner})`)
  return fail('port', `${place} is taken by another program`, 'stop that program, or serve with --port or server.port on another')
}

/** `open`, or why not. */
async function knock(host: string, port: number): Promise<string> {
  const socket = connect({ host, port })
  try {
    await once(socket, 'connect', { signal: AbortSignal.timeout(ANSWER_MS) })
    return 'open'
  } catch (error) {
    // a name with several addresses: refused by each
    const [first = error] = Object(error).errors ?? []
    return codeOf(first) ?? messageOf(first)
  } finally {
    socket.destroy()
  }
}

async function ownerOf(port: number, home: string): Promise<number | undefined> {
  const servers = await findServers(home).catch(() => [])
  for (const server of servers) server[Symbol.dispose]()
  return servers.find(one => one.info.port === port)?.info.pid
}

async function firstFreeForAll(): Promise<number> {
  const told = await readFile('/proc/sys/net/ipv4/ip_unprivileged_port_start', 'utf8').catch(() => '0')
  return Number.parseInt(told, 10)
}
