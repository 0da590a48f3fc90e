import { schema } from '@svc/core'

/** Limits of all isolated plugins, or of one. */
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

/** The value that allows plugins without a sandbox. It is long on purpose: it states the risk. */
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
    memory: { ...limits.memory, default: '256M', description: 'Memory of one isolated plugin, including its files in /tmp.' },
    pids: { ...limits.pids, default: 64, description: 'Processes and threads of one isolated plugin. Node alone has a dozen.' },
    hang_timeout: {
      ...limits.hang_timeout,
      default: 10,
      description: 'Seconds without a response of its event loop after which the plugin is killed.',
    },
    restarts: {
      ...limits.restarts,
      default: 5,
      description: 'Maximum restarts of an isolated plugin within ten minutes. After one more exit, svc quarantines the plugin.',
    },
    plugins: {
      type: 'object',
      additionalProperties: { type: 'object', properties: limits, additionalProperties: false },
      default: {},
      description: 'Limits of single plugins, by name.',
    },
    without_sandbox: {
      enum: ['refuse', OPEN],
      default: 'refuse',
      description: `What to do on a machine without a working sandbox. "${OPEN}": only Node's permission model restricts the plugins, and their network is open.`,
    },
  },
  additionalProperties: false,
})

const UNITS: Readonly<Record<string, number>> = { K: 1024, M: 1024 ** 2, G: 1024 ** 3 }

/** Returns the limits of one plugin, in bytes and milliseconds. */
export function limitsFor({ plugins, ...all }: IsolationConfig, plugin: string) {
  const { memory, pids, hang_timeout, restarts } = { ...all, ...plugins[plugin] }
  const memoryBytes = Number(memory.slice(0, -1)) * UNITS[memory.at(-1)!]!
  return { memoryBytes, pids, hangMs: hang_timeout * 1000, restarts, windowMs: 600_000 }
}
