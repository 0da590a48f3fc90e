import type { CallContext } from '@svc/core'
import type { Effect, ProcessLimits, ProcessSandbox, Released, Tool, ToolResult } from '@svc/core/contracts'
import { answerOf, objectOf, toolOf } from '@svc/plugin-kit'
import type { Roots } from '@svc/safe-fs'
import { runChild, type RunResult } from '@svc/worker-pool/processes'
import { notAllowed, timedOut, zeroByte } from './errors.ts'
import { bytesOf, type ShellConfig } from './settings.ts'

export interface ShellOptions {
  readonly sandbox: ProcessSandbox
  readonly roots: Roots
  readonly config: ShellConfig
}

/** Arguments as the schema allows them. */
interface Arguments {
  readonly command: readonly string[]
  readonly cwd?: string
  readonly input?: string
  readonly timeout?: number
}

/** Bytes of output after which a command is terminated. */
const FLOOD_BYTES = 67_108_864
/** Maximum time to create and remove a sandbox, added to the time limit of the tool. */
const AROUND_MS = 15_000

const output = { type: 'string', description: 'output; if it is too long, its start and end with a note in between' }

/** Creates `run_command`, which runs an allowed program in the process sandbox, without a shell. */
export function createRunCommand(parts: ShellOptions): Tool {
  const { roots, config } = parts
  return toolOf<Arguments>({
    description: `Runs a program and returns its output. There is no shell: no pipes, patterns or variables; pass each word of the command separately. Programs: ${config.commands.join(', ')}. ${wordsOf(config)} ${roots.words}`,
    category: 'shell',
    effects: effectsOf(config),
    workplace: true,
    timeoutMs: config.timeout_ms + AROUND_MS,
    parameters: {
      ...objectOf(
        {
          command: {
            type: 'array',
            items: { type: 'string', maxLength: 100_000 },
            minItems: 1,
            maxItems: 1000,
            description: 'the program and its arguments, such as ["git", "log", "--oneline"]',
          },
          cwd: { type: 'string', maxLength: 4096, description: 'working directory' },
          input: { type: 'string', maxLength: 1_000_000, description: 'standard input of the program' },
          timeout: {
            type: 'number',
            exclusiveMinimum: 0,
            description: `time limit in seconds; maximum and default: ${config.timeout_ms / 1000}`,
          },
        },
        ['cwd', 'input', 'timeout']
      ),
    },
    result: objectOf(
      {
        exit_code: { type: ['integer', 'null'], description: 'null if a signal terminated it' },
        signal: { type: ['string', 'null'] },
        stdout: output,
        stderr: output,
        truncated: { type: 'boolean' },
        duration_ms: { type: 'integer' },
        stopped: { enum: ['memory', 'processes', 'output'], description: 'limit that the command exceeded' },
      },
      ['stopped']
    ),
    call: (wanted, ctx) => runCommand(parts, wanted, ctx),
  })
}

const effectsOf = ({ write, network }: ShellConfig): Effect[] => [
  'read',
  ...(write ? (['write'] as const) : []),
  'execute',
  ...(network ? (['network'] as const) : []),
]

const wordsOf = ({ write, network }: ShellConfig): string =>
  `It runs in a sandbox: it can write ${write ? 'in the folder of the tools and in /tmp' : 'only in /tmp, which is temporary'}, and has ${network ? 'the network' : 'no network'}.`

async function runCommand(
  { sandbox, roots, config }: ShellOptions,
  { command, cwd, input, timeout }: Arguments,
  ctx: CallContext
) {
  const [program, ...args] = command as [string, ...string[]]
  if (!config.commands.includes(program)) throw notAllowed(program, config.commands)
  if (command.some(word => word.includes('\0'))) throw zeroByte()
  const place = cwd === undefined || roots.isAll(cwd) ? roots.all[0]! : await roots.find(cwd)
  const timeoutMs = Math.min(config.timeout_ms, timeout === undefined ? config.timeout_ms : Math.ceil(timeout * 1000))
  const request = { command: program, args, env: environment(config.env), cwd: place.real, limits: limitsOf(config, roots) }
  const { id, enforced: _enforced, ...line } = await sandbox.wrap(request, ctx)
  let ran: RunResult | undefined
  let met: Released
  try {
    const bounds = { timeoutMs, most: config.max_output_bytes, floodBytes: FLOOD_BYTES, contained: true, signal: ctx.signal }
    ran = await runChild({ ...line, ...bounds, ...(input === undefined ? {} : { input }) })
  } finally {
    met = await sandbox.release(id, ctx)
  }
  if (ran.stopped === 'timeout') throw timedOut(timeoutMs)
  return toldResult(ran, met)
}

function limitsOf({ write, network, read_paths, memory_limit, pids }: ShellConfig, { all }: Roots): ProcessLimits {
  const folders = all.map(root => root.real)
  return {
    networkAccess: network,
    filesystemReadonly: true,
    allowedPaths: write ? folders : [],
    readPaths: write ? read_paths : [...folders, ...read_paths],
    memoryBytes: bytesOf(memory_limit),
    ...(pids === undefined ? {} : { pids }),
  }
}

/** The environment variables that the configuration lists. */
const environment = (names: readonly string[]): Record<string, string> =>
  Object.fromEntries(names.flatMap(name => (process.env[name] === undefined ? [] : [[name, process.env[name]]])))

type Stopped = 'memory' | 'processes' | 'output'

const WORDS: Readonly<Record<Stopped, string>> = {
  memory: '[The command exceeded its memory limit and was terminated.]',
  processes: '[The command reached its process limit.]',
  output: '[The command exceeded its output limit and was terminated.]',
}

/** The result of a command. A failed command is not an error of the tool: the caller reads its output. */
function toldResult(ran: RunResult, met: Released): ToolResult {
  const { code, signal, stdout, stderr, durationMs } = ran
  const stopped = stoppedBy(ran, met)
  const lines = [
    ...(stdout.text === '' ? [] : [stdout.text.trimEnd()]),
    ...(stderr.text === '' ? [] : ['[standard error]', stderr.text.trimEnd()]),
    ...(stopped === undefined ? [] : [WORDS[stopped]]),
    code === null ? `[terminated by ${signal}]` : `[exit code ${code}]`,
  ]
  return answerOf(lines, {
    exit_code: code,
    signal,
    stdout: stdout.text,
    stderr: stderr.text,
    truncated: stdout.truncated || stderr.truncated,
    duration_ms: durationMs,
    ...(stopped === undefined ? {} : { stopped }),
  })
}

function stoppedBy({ stopped }: RunResult, { outOfMemory, outOfPids }: Released): Stopped | undefined {
  if (stopped === 'flood') return 'output'
  return outOfMemory ? 'memory' : outOfPids ? 'processes' : undefined
}
