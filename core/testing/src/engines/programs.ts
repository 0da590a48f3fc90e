import { accessSync, constants, existsSync, readdirSync } from 'node:fs'
import { createServer } from 'node:net'
import { once } from 'node:events'
import { randomInt, randomUUID } from 'node:crypto'
import { delimiter, join } from 'node:path'
import { engineMissing } from './errors.ts'

/** A server program that tests can start. */
export type EngineName = 'postgres' | 'pgbouncer' | 'redis'

const ENGINES = {
  postgres: { program: 'postgres', name: 'PostgreSQL', packages: 'postgresql' },
  pgbouncer: { program: 'pgbouncer', name: 'PgBouncer', packages: 'pgbouncer' },
  redis: { program: 'redis-server', name: 'Redis', packages: 'redis-server' },
} as const satisfies Record<EngineName, { program: string; name: string; packages: string }>

/** The user of all engines of this process, which can do everything. Other users of the machine do not know the password. */
export const CREDENTIALS = { user: 'svc', password: randomUUID() } as const

/** Debian keeps the programs of PostgreSQL out of PATH, and PgBouncer out of the PATH of most users. */
const POSTGRES = '/usr/lib/postgresql'
const postgresFolders = () =>
  existsSync(POSTGRES)
    ? readdirSync(POSTGRES)
        .sort((one, other) => Number(other) - Number(one))
        .map(version => join(POSTGRES, version, 'bin'))
    : []

function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    return true
  } catch {
    return false
  }
}

/** Names a program that counts as not installed: to see that tests which need it are skipped. */
const HIDDEN = 'SVC_TEST_HIDDEN'

/** The path of a program, also of one that PATH does not contain; undefined where it is not installed. */
export const programPath = (name: string): string | undefined =>
  [...(process.env.PATH ?? '').split(delimiter).filter(Boolean), ...postgresFolders(), '/usr/sbin']
    .map(folder => join(folder, name))
    .find(path => process.env[HIDDEN] !== name && isProgram(path))

/** Why this machine cannot start an engine; undefined where it can. */
export function missingEngine(engine: EngineName): string | undefined {
  const { program, name } = ENGINES[engine]
  if (process.platform !== 'linux') return `test engines need Linux`
  return programPath(program) === undefined ? `${name} is not installed on this machine` : undefined
}

/** The path of the server program. Throws ENGINE_MISSING where this machine cannot start it. */
export function engineProgram(engine: EngineName): string {
  const reason = missingEngine(engine)
  if (reason !== undefined) throw engineMissing(reason, ENGINES[engine].packages)
  return programPath(ENGINES[engine].program)!
}

/** The kernel gives ports from 32768 on to outgoing connections, and to servers that let it choose. */
const [FIRST_PORT, END_PORT] = [20_000, 32_768]

/**
 * A TCP port of the loopback interface that is free now. The kernel does not give it to another process on its own, so that a
 * server can stop and start again on it.
 */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = randomInt(FIRST_PORT, END_PORT)
    const server = createServer()
    const listening = once(server, 'listening')
    server.listen(port, '127.0.0.1')
    try {
      await listening
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'EADDRINUSE') continue
      throw error
    }
    server.close()
    await once(server, 'close')
    return port
  }
}
