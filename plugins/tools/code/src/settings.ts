import { stat } from 'node:fs/promises'
import { schema, type SvcError } from '@svc/core'
import type { ScriptLimits } from '@svc/core/contracts'
import { bytesOf } from '@svc/plugin-kit'
import { configInvalid } from './errors.ts'

/** The section `tools.code`: settings of the sandbox. */
export interface CodeConfig {
  /** Time limit of a call in seconds. */
  timeout: number
  /** Memory limit of a call, such as `512M`. */
  memory_limit: string
  network_access: boolean
  filesystem_readonly: boolean
  /** Folders that the code can read and write. */
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
      description: 'Time limit of run_javascript in seconds, at most sandbox.quickjs.timeout.',
    },
    memory_limit: {
      type: 'string',
      pattern: '^[0-9]+[KMG]?$',
      default: '512M',
      description: 'Memory limit, including the engine: from 32M to sandbox.quickjs.memory_limit.',
    },
    network_access: { type: 'boolean', default: false, description: 'Give the code fetch, for public addresses.' },
    filesystem_readonly: {
      type: 'boolean',
      default: true,
      description: 'Must be true: the code has no file access except to allowed_paths.',
    },
    allowed_paths: {
      type: 'array',
      items: { type: 'string', minLength: 1 },
      default: [],
      description: 'Folders that the code can read and write through `files`.',
    },
  },
  additionalProperties: false,
})

const LEAST_BYTES = 32 * 1024 ** 2

/** The limits for the sandbox. */
export const limitsOf = (config: CodeConfig): ScriptLimits => ({
  timeoutMs: config.timeout * 1000,
  memoryBytes: bytesOf(config.memory_limit),
  network: config.network_access ? ['*'] : [],
  paths: config.allowed_paths,
})

/** Finds invalid settings before anything runs. */
export async function problemsOf(config: CodeConfig): Promise<SvcError[]> {
  const folders = await Promise.all(config.allowed_paths.map(async path => (await isFolder(path)) || path))
  return [
    ...(config.filesystem_readonly
      ? []
      : [
          configInvalid(
            'filesystem_readonly',
            'must be true: the code never has access to the whole file system',
            'List the folders in allowed_paths'
          ),
        ]),
    ...(bytesOf(config.memory_limit) >= LEAST_BYTES
      ? []
      : [configInvalid('memory_limit', `must be 32M or more, was "${config.memory_limit}"`, 'Write 512M')]),
    ...folders.flatMap(path =>
      path === true
        ? []
        : [
            configInvalid(
              'allowed_paths',
              `contains "${path}", which is not a folder`,
              'Create the folder, or remove it from the list'
            ),
          ]
    ),
  ]
}

const isFolder = (path: string): Promise<boolean> =>
  stat(path).then(
    found => found.isDirectory(),
    () => false
  )
