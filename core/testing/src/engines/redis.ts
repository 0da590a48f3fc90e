import { clientFailed } from './errors.ts'
import { CREDENTIALS, engineProgram, freePort } from './programs.ts'
import { type RunningEngine, firstAnswer, ServerProcess } from './server-process.ts'
import { engineFolder, writeEngineFile } from './work-folder.ts'

export interface RedisOptions {
  /** Writes each command to the disk before the answer, so that data is there after `kill`. Off unless set. */
  readonly persistent?: boolean
  /** Memory for data, for example `8mb`. */
  readonly maxMemory?: string
  /** What happens when the memory is full; `noeviction` unless set. */
  readonly maxMemoryPolicy?: 'noeviction' | `allkeys-${'lru' | 'lfu' | 'random'}` | `volatile-${'lru' | 'lfu' | 'random' | 'ttl'}`
  /** Other settings of `redis.conf`, for example `{ databases: 1 }`. */
  readonly settings?: Readonly<Record<string, string | number>>
}

/** A Redis server with a password. */
export interface Redis extends RunningEngine {
  /** A random text. */
  readonly password: string
  /** Sends one command: `command('SET', 'key', 'value')`. Needs the package `ioredis`. */
  command(name: string, ...args: (string | number)[]): Promise<unknown>
  /** Deletes all keys, as an operator or a failed server can. */
  flush(): Promise<void>
}

/** Starts a Redis server on a free port. Throws ENGINE_MISSING where Redis is not installed. */
export async function startRedis(options: RedisOptions = {}): Promise<Redis> {
  const program = engineProgram('redis')
  const folder = engineFolder('redis')
  const port = await freePort()
  const { password } = CREDENTIALS
  const settings = {
    ...options.settings,
    ...(options.maxMemory !== undefined && { maxmemory: options.maxMemory }),
    'maxmemory-policy': options.maxMemoryPolicy ?? 'noeviction',
    appendonly: options.persistent ? 'yes' : 'no',
    appendfsync: 'always',
    save: '',
    requirepass: password,
    bind: '127.0.0.1',
    port,
    dir: folder,
  }
  const lines = Object.entries(settings).map(([key, value]) => `${key} ${value === '' ? '""' : value}\n`)
  const file = writeEngineFile(folder, 'redis.conf', lines.join('')) // other users can read the arguments of a process
  const server = new ServerProcess({
    name: 'Redis',
    folder,
    port,
    command: [program, file],
    isReady: async () => (await firstAnswer(port, `AUTH ${password}\r\nPING\r\n`)).includes('+PONG'),
    stopSignal: 'SIGTERM',
    endSignal: 'KILL',
  })
  await server.open()
  const url = `redis://:${password}@127.0.0.1:${port}`
  const command = (name: string, ...args: (string | number)[]) => commandOnce(url, name, args)
  return {
    port,
    url,
    password,
    command,
    flush: async () => void (await command('FLUSHALL')),
    start: () => server.start(),
    stop: () => server.stop(),
    kill: () => server.kill(),
    log: () => server.log(),
    [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
  }
}

async function commandOnce(url: string, name: string, args: readonly (string | number)[]): Promise<unknown> {
  const { Redis: Client } = await import('ioredis').catch(clientFailed('ioredis'))
  const client = new Client(url, {
    lazyConnect: true,
    retryStrategy: () => null,
    maxRetriesPerRequest: 0,
    connectTimeout: 10_000,
  })
  client.on('error', () => {}) // `connect` reports it
  try {
    await client.connect()
    return await client.call(name, ...args)
  } finally {
    client.disconnect()
  }
}
