import { isAbsolute, sep } from 'node:path'
import { schema } from '@svc/core'
import type { ProcessSandbox } from '@svc/core/contracts'
import { noCommands, noSandbox, relativeCommand } from './errors.ts'

/** The section `tools.shell`. */
export interface ShellConfig {
  enabled: boolean
  /** Programs that may be run: names, or whole paths. */
  commands: string[]
  /** Folders that commands see; without them those of the tools for files. */
  roots?: string[]
  write: boolean
  network: boolean
  /** Further files and folders that commands may read. */
  read_paths: string[]
  /** Variables of the host that commands get. */
  env: string[]
  memory_limit: string
  pids?: number
  timeout_ms: number
  max_output_bytes: number
}

const texts = (description: string) => ({ type: 'array', items: { type: 'string', minLength: 1 }, description }) as const
const flag = (description: string) => ({ type: 'boolean', default: false, description }) as const

export const shellConfig = schema<ShellConfig>({
  type: 'object',
  properties: {
    enabled: flag('Whether there is the tool run_command.'),
    commands: { ...texts('Programs that may be run: names, or whole paths. Nothing else is.'), default: [] },
    roots: { ...texts('Folders that commands see and run in; without it those of tools.files.roots.'), minItems: 1 },
    write: flag('Whether commands may write in these folders.'),
    network: flag('Whether commands have the network of this machine, with all servers on it.'),
    read_paths: {
      ...texts('Further files and folders that commands may read: tools installed apart from the system.'),
      default: [],
    },
    env: { ...texts('Names of variables that commands get from the environment of svc.'), default: [] },
    memory_limit: {
      type: 'string',
      pattern: '^\\d+[KMG]?$',
      default: '512M',
      description: 'Memory of one command and all that it starts.',
    },
    pids: {
      type: 'integer',
      minimum: 1,
      maximum: 100_000,
      description: 'Processes and threads of one command; without it 256 where this machine can hold that.',
    },
    timeout_ms: {
      type: 'integer',
      minimum: 100,
      maximum: 3_600_000,
      default: 60_000,
      description: 'Milliseconds that one command may take.',
    },
    max_output_bytes: {
      type: 'integer',
      minimum: 1024,
      maximum: 1_048_576,
      default: 32_768,
      description: 'Bytes that are kept of each of its two outputs.',
    },
  },
  additionalProperties: false,
})

/** What the tool cannot be without, once it is switched on. */
export function checkSettings(config: ShellConfig, sandbox: ProcessSandbox | undefined): asserts sandbox is ProcessSandbox {
  if (config.commands.length === 0) throw noCommands()
  const relative = config.commands.find(command => command.includes(sep) && !isAbsolute(command))
  if (relative !== undefined) throw relativeCommand(relative)
  if (!sandbox) throw noSandbox()
}

const UNITS: Readonly<Record<string, number>> = { K: 1024, M: 1024 ** 2, G: 1024 ** 3 }

/** `512M` in bytes. */
export const bytesOf = (limit: string): number => Number.parseInt(limit, 10) * (UNITS[limit.at(-1)!] ?? 1)
