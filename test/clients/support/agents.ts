import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { mkdir, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { delimiter, dirname, join } from 'node:path'
import { text } from 'node:stream/consumers'
import { stripVTControlCharacters } from 'node:util'
import { fileURLToPath } from 'node:url'

const MODULES = fileURLToPath(new URL('../node_modules', import.meta.url))
const PLATFORM = `${process.platform}-${process.arch}`

/** A coding agent, as npm installs it. */
export interface Agent {
  readonly title: string
  /** The program below node_modules; Node runs one that ends in .js. */
  readonly program: string
  /** Its command line for one prompt without questions. */
  args(prompt: string): readonly string[]
  readonly variables?: Readonly<Record<string, string>>
}

/** The agents by the names that `svc connect` has for them. */
export const AGENTS: Readonly<Record<string, Agent>> = {
  codex: {
    title: 'Codex',
    program: '@openai/codex/bin/codex.js',
    // the sandbox of Codex needs rights that a container does not give
    args: prompt => ['exec', '--skip-git-repo-check', '--dangerously-bypass-approvals-and-sandbox', prompt],
  },
  'claude-code': {
    title: 'Claude Code',
    program: `@anthropic-ai/claude-code-${PLATFORM}/claude`,
    args: prompt => ['-p', prompt, '--allowedTools', 'Bash'],
  },
  opencode: { title: 'opencode', program: `opencode-${PLATFORM}/bin/opencode`, args: prompt => ['run', prompt] },
  cline: { title: 'Cline', program: `@cline/cli-${PLATFORM}/bin/cline`, args: prompt => [prompt] },
  continue: { title: 'Continue', program: '@continuedev/cli/dist/cn.js', args: prompt => ['-p', prompt, '--auto'] },
  pi: { title: 'pi', program: '@mariozechner/pi-coding-agent/dist/cli.js', args: prompt => ['-p', prompt] },
  qwen: {
    title: 'Qwen Code',
    program: '@qwen-code/qwen-code/cli.js',
    args: prompt => ['-p', prompt, '--yolo'],
    // it sends requests to loopback addresses through a proxy as well
    variables: { HTTP_PROXY: '', HTTPS_PROXY: '' },
  },
  gemini: {
    title: 'Gemini CLI',
    program: '@google/gemini-cli/bundle/gemini.js',
    args: prompt => ['--yolo', '-p', prompt],
    variables: { GEMINI_CLI_TRUST_WORKSPACE: 'true', GEMINI_TELEMETRY_ENABLED: 'false' },
  },
}

/** Why this machine cannot run the agent. */
export const missing = ({ program }: Agent): string | undefined =>
  existsSync(join(MODULES, program)) ? undefined : `its package has no program for ${PLATFORM}`

/** A port on which nothing listens: requests to other machines fail at once. */
const NOWHERE = 'http://127.0.0.1:9'
const OFFLINE = {
  HTTP_PROXY: NOWHERE,
  HTTPS_PROXY: NOWHERE,
  NO_PROXY: '127.0.0.1,localhost',
  no_proxy: '127.0.0.1,localhost',
  DO_NOT_TRACK: '1',
  DISABLE_TELEMETRY: '1',
  DISABLE_AUTOUPDATER: '1',
  CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
  CONTINUE_METRICS_ENABLED: '0',
  OPENCODE_DISABLE_AUTOUPDATE: '1',
  OPENCODE_DISABLE_MODELS_FETCH: '1',
  PI_OFFLINE: '1',
  PI_TELEMETRY: '0',
}

/** Longest time for one prompt: Node of another project and 200 MB of program start on a busy machine. */
const LIMIT_MS = 240_000

/** What an agent has printed. */
export interface AgentRun {
  readonly code: number | null
  /** Both streams, without colors. */
  readonly out: string
}

/** A home of one test, with a folder to work in. */
export async function agentHome() {
  const home = await mkdtemp(join(tmpdir(), 'svc-agent-'))
  const work = join(home, 'work')
  await mkdir(work)
  return {
    home,
    work,
    /** Runs the agent to its end. Throws if it takes too long. */
    async run(agent: Agent, prompt: string, key: string, variables: Readonly<Record<string, string>> = {}): Promise<AgentRun> {
      const program = join(MODULES, agent.program)
      const words = program.endsWith('.js') ? [program, ...agent.args(prompt)] : agent.args(prompt)
      const child = spawn(program.endsWith('.js') ? process.execPath : program, words, {
        cwd: work,
        env: {
          ...OFFLINE,
          ...agent.variables,
          ...variables,
          PATH: `${dirname(process.execPath)}${delimiter}${process.env.PATH}`,
          HOME: home,
          SVC_API_KEY: key,
        },
        stdio: ['ignore', 'pipe', 'pipe'],
      })
      const timer = setTimeout(() => child.kill('SIGKILL'), LIMIT_MS)
      try {
        const [out, err, [code, signal]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'exit')])
        const all = stripVTControlCharacters(`${out}\n${err}`)
        if (signal === 'SIGKILL') throw new Error(`${agent.title} did not end within ${LIMIT_MS} ms:\n${all.slice(-2000)}`)
        return { code: code as number | null, out: all }
      } finally {
        clearTimeout(timer)
      }
    },
    async [Symbol.asyncDispose]() {
      endProcessesOf(home)
      await rm(home, { recursive: true, force: true, maxRetries: 10, retryDelay: 200 })
    },
  }
}

/** Ends what an agent has left running, which its environment shows: Cline and opencode start servers. */
function endProcessesOf(home: string): void {
  if (process.platform !== 'linux') return
  for (const id of readdirSync('/proc').filter(name => /^\d+$/.test(name)))
    try {
      if (readFileSync(`/proc/${id}/environ`, 'utf8').split('\0').includes(`HOME=${home}`)) process.kill(Number(id), 'SIGKILL')
    } catch {
      // it has ended, or is of another user
    }
}
