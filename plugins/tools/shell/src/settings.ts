import { isAbsolute, sep } from 'node:path'
import { schema } from '@svc/core'
import type { ProcessSandbox } from '@svc/core/contracts'
import { typed } from '@svc/plugin-kit'
import { noCommands, noSandbox, relativeCommand } from './errors.ts'

/** The section `tools.shell`. */
export interface ShellConfig {
  enabled: boolean
  /** Allowed programs: names or absolute paths. */
  commands: string[]
  /** Folders that commands can use; default: those of the file tools. */
  roots?: string[]
  write: boolean
  network: boolean
  /** Additional readable files and folders. */
  read_paths: string[]
  /** Environment variables that commands inherit. */
  env: string[]
  memory_limit: string
  pids?: number
  timeout_ms: number
  max_output_bytes: number
}

const flag = (description: string) => typed.flag(description, { default: false })

export const shellConfig = schema<ShellConfig>({
  type: 'object',
  properties: {
    enabled: flag('Enable the tool run_command.'),
    commands: typed.texts('Allowed programs: names or absolute paths.', { default: [] }),
    roots: typed.texts('Folders that commands can read and run in; default: tools.files.roots.', { minItems: 1 }),
    write: flag('Allow commands to write in these folders.'),
    network: flag('Give commands the network of this machine, including its local servers.'),
    read_paths: typed.texts('Additional readable files and folders, such as tools outside the system folders.', { default: [] }),
    env: typed.texts('Names of environment variables that commands inherit from svc.', { default: [] }),
    memory_limit: typed.size('Memory limit of a command with its child processes.', { default: '512M' }),
    pids: {
      type: 'integer',
      minimum: 1,
      maximum: 100_000,
      description: 'Limit of processes and threads of a command; default: 256 if the machine can enforce it.',
    },
    timeout_ms: {
      type: 'integer',
      minimum: 100,
      maximum: 3_600_000,
      default: 60_000,
      description: 'Time limit of a command in milliseconds.',
    },
    max_output_bytes: {
      type: 'integer',
      minimum: 1024,
      maximum: 1_048_576,
      default: 32_768,
      description: 'Maximum bytes of the standard output and of the standard error.',
    },
  },
  additionalProperties: false,
})

/** Checks the requirements of an enabled tool. */
export function checkSettings(config: ShellConfig, sandbox: ProcessSandbox | undefined): asserts sandbox is ProcessSandbox {
  if (config.commands.length === 0) throw noCommands()
  const relative = config.commands.find(command => command.includes(sep) && !isAbsolute(command))
  if (relative !== undefined) throw relativeCommand(relative)
  if (!sandbox) throw noSandbox()
}

const UNITS: Readonly<Record<string, number>> = { K: 1024, M: 1024 ** 2, G: 1024 ** 3 }

/** `512M` in bytes. */
export const bytesOf = (limit: string): number => Number.parseInt(limit, 10) * (UNITS[limit.at(-1)!] ?? 1)
