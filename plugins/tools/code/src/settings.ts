import { stat } from 'node:fs/promises'
import { schema, type SvcError } from '@svc/core'
import type { ScriptLimits } from '@svc/core/contracts'
import { configInvalid } from './errors.ts'

/** The section `tools.code`: the five settings of a sandbox. */
export interface CodeConfig {
  /** Seconds that a call may take. */
  timeout: number
  /** Memory of a call: `512M`. */
  memory_limit: string
  network_access: boolean
  filesystem_readonly: boolean
  /** Folders that the code may read and write. */
  allowed_paths: string[]
}

export const codeConfig = schema<CodeConfig>({
  type: 'object',
  properties: {
    timeout: {
      type: 'number',
      exclusiveMinimum: 0,
      maximum: 3600,
      default: 30,
      description: 'Seconds that run_javascript may take; sandbox.quickjs.timeout is the most.',
    },
    memory_limit: {
      type: 'string',
      pattern: '^[0-9]+[KMG]?$',
      default: '512M',
      description: 'Memory that it may have, the engine included: from 32M; sandbox.quickjs.memory_limit is the most.',
    },
    network_access: { type: 'boolean', default: false, description: 'Whether the code has fetch, for public addresses.' },
    filesystem_readonly: {
      type: 'boolean',
      default: true,
      description: 'Must be true: the code sees no file system but allowed_paths.',
    },
    allowed_paths: {
      type: 'array',
      items: { type: 'string', minLength: 1 },
      default: [],
      description: 'Folders that the code may read and write, through files.',
    },
  },
  additionalProperties: false,
})

const UNITS: Readonly<Record<string, number>> = { '': 1, K: 1024, M: 1024 ** 2, G: 1024 ** 3 }
const LEAST_BYTES = 32 * 1024 ** 2

function bytesOf(amount: string): number {
  const [, digits = '', unit = ''] = /^(\d+)([KMG]?)$/.exec(amount) ?? []
  return Number(digits) * UNITS[unit]!
}

/** What the sandbox is told. */
export const limitsOf = (config: CodeConfig): ScriptLimits => ({
  timeoutMs: config.timeout * 1000,
  memoryBytes: bytesOf(config.memory_limit),
  network: config.network_access ? ['*'] : [],
  paths: config.allowed_paths,
})

/** What cannot be held, or is not there: told before anything runs. */
export async function problemsOf(config: CodeConfig): Promise<SvcError[]> {
  const folders = await Promise.all(config.allowed_paths.map(async path => (await isFolder(path)) || path))
  return [
    ...(config.filesystem_readonly
      ? []
      : [
          configInvalid(
            'filesystem_readonly',
            'must be true: the whole file system is never shown',
            'list the folders in allowed_paths'
          ),
        ]),
    ...(bytesOf(config.memory_limit) >= LEAST_BYTES
      ? []
      : [configInvalid('memory_limit', `must be 32M or more, was "${config.memory_limit}"`, 'write 512M')]),
    ...folders.flatMap(path =>
      path === true ? [] : [configInvalid('allowed_paths', `names "${path}", which is no folder`, 'create it, or take it out')]
    ),
  ]
}

const isFolder = (path: string): Promise<boolean> =>
  stat(path).then(
    found => found.isDirectory(),
    () => false
  )
