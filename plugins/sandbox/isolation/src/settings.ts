import { schema } from '@svc/core'

/** What holds for each plugin, or for one. */
interface Limits {
  memory: string
  pids: number
  /** Seconds. */
  hang_timeout: number
  restarts: number
}

/** The section `isolation`. */
export interface IsolationConfig extends Limits {
  plugins: { [plugin: string]: Partial<Limits> }
  without_sandbox: 'refuse' | typeof OPEN
}

/** What a person must write to have plugins run where the sandbox cannot hold them: it says what it means. */
export const OPEN = 'run-with-open-network-and-unlimited-memory'

const limits = {
  memory: { type: 'string', pattern: '^[1-9]\\d*[KMG]$' },
  pids: { type: 'integer', minimum: 16, maximum: 100_000 },
  hang_timeout: { type: 'number', minimum: 1, maximum: 3600 },
  restarts: { type: 'integer', minimum: 0, maximum: 1000 },
} as const

export const isolationConfig = schema<IsolationConfig>({
  type: 'object',
  properties: {
    memory: { ...limits.memory, default: '256M', description: 'Memory of one isolated plugin, its files in /tmp included.' },
    pids: { ...limits.pids, default: 64, description: 'Processes and threads of one; Node alone has a dozen.' },
    hang_timeout: {
      ...limits.hang_timeout,
      default: 10,
      description: 'Seconds without an answer of its event loop after which it is killed.',
    },
    restarts: {
      ...limits.restarts,
      default: 5,
      description: 'How often it is brought up again within ten minutes; after one more death it stays out.',
    },
    plugins: {
      type: 'object',
      additionalProperties: { type: 'object', properties: limits, additionalProperties: false },
      default: {},
      description: 'What differs for single plugins, by name.',
    },
    without_sandbox: {
      enum: ['refuse', OPEN],
      default: 'refuse',
      description: `What happens on a machine whose sandbox cannot hold them. "${OPEN}": only Node's permission model holds them, which keeps no stranger from the network.`,
    },
  },
  additionalProperties: false,
})

const UNITS: Readonly<Record<string, number>> = { K: 1024, M: 1024 ** 2, G: 1024 ** 3 }

/** The limits of one plugin, in bytes and milliseconds. */
export function limitsFor({ plugins, ...all }: IsolationConfig, plugin: string) {
  const { memory, pids, hang_timeout, restarts } = { ...all, ...plugins[plugin] }
  const memoryBytes = Number(memory.slice(0, -1)) * UNITS[memory.at(-1)!]!
  return { memoryBytes, pids, hangMs: hang_timeout * 1000, restarts, windowMs: 600_000 }
}
