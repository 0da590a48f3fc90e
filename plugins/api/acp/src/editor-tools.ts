import { isAbsolute, resolve } from 'node:path'
import type { ToolCallContent } from '@agentclientprotocol/sdk'
import { type CallContext, codeOf, isTree } from '@svc/core'
import type { Tool } from '@svc/core/contracts'
import { answerOf, definedOf, objectOf, toolOf } from '@svc/plugin-kit'
import { realOf } from '@svc/safe-fs'
import { editorAnswerInvalid, editorCannot, editorFailed, notInSession, terminalsFull, terminalUnknown } from './errors.ts'
import type { Arguments, Editor, RunningTurn, Session } from './session.ts'

/** Finds the turn that calls a tool. */
type FindTurn = (requestId: string) => RunningTurn | undefined

/**
 * The files and terminals of the editor as tools, for the capabilities that it has. They are items of the slot `Tools`, so that
 * modes, permissions, limits and hooks apply to them as to every tool. `modes`: the modes in which turns can use them; other
 * callers than turns cannot.
 */
export function editorTools(
  { capabilities: { fs, terminal } }: Pick<Editor, 'capabilities'>,
  modes: readonly string[],
  find: FindTurn
): readonly (readonly [name: string, tool: Tool])[] {
  return [
    ...(fs?.readTextFile ? [[READ, readTool(modes, find)] as const] : []),
    ...(fs?.writeTextFile ? [[WRITE, writeTool(modes, find)] as const] : []),
    ...(terminal
      ? [[RUN, runTool(modes, find)] as const, [OUTPUT, outputTool(modes, find)] as const, [STOP, stopTool(modes, find)] as const]
      : []),
  ]
}

const READ = 'editor_read_file'
const WRITE = 'editor_write_file'
const RUN = 'editor_run_command'
const OUTPUT = 'editor_command_output'
const STOP = 'editor_stop_command'

function turnOf(find: FindTurn, { requestId }: CallContext): RunningTurn {
  const turn = find(requestId)
  if (!turn) throw notInSession()
  return turn
}

/** A request to the editor, which ends with the call. Its result is unchecked. */
async function askEditor(
  { editor }: RunningTurn,
  what: string,
  method: string,
  params: object,
  signal: AbortSignal
): Promise<Readonly<Record<string, unknown>>> {
  let answer: unknown
  try {
    answer = await editor.client.request<unknown, object>(method, params, {
      cancellationSignal: signal,
      stopWaitingOnCancel: true,
    })
  } catch (error) {
    signal.throwIfAborted()
    throw editorFailed(what, error)
  }
  // a void result
  return isTree(answer) ? answer : {}
}

// Files

const PATH = {
  type: 'string',
  minLength: 1,
  maxLength: 4096,
  description: 'Path, absolute or relative to the folder of the project',
}
const FROM_1 = { type: 'integer', minimum: 1 }

/**
 * The absolute path of a file in the folders of the session. The editor gets it as it is written, because it knows its buffers
 * by these paths. Throws PATH_OUTSIDE (also if a link leads out), and PATH_PROTECTED for a change.
 */
async function fileOf({ cwd, roots }: Session, path: string, isChange: boolean): Promise<string> {
  const absolute = isAbsolute(path) ? resolve(path) : resolve(cwd, path)
  const found = await roots.find(absolute).catch((error: unknown) => {
    // the editor can have a file that is not on the disk
    if (codeOf(error) === 'PATH_MISSING') return undefined
    throw error
  })
  if (found && !isChange) return absolute
  const target = await roots.target(absolute)
  if (isChange) await roots.refuseChange(found?.real ?? realOf(target), target.shown)
  return absolute
}

async function readFile(
  turn: RunningTurn,
  path: string,
  part: { readonly line?: number | undefined; readonly limit?: number | undefined },
  signal: AbortSignal
): Promise<string> {
  if (!turn.editor.capabilities.fs?.readTextFile) throw editorCannot('its files')
  const params = { sessionId: turn.session.id, path, ...definedOf(part) }
  const { content } = await askEditor(turn, 'read the file', 'fs/read_text_file', params, signal)
  if (typeof content !== 'string') throw editorAnswerInvalid('read the file')
  return content
}

const readTool = (modes: readonly string[], find: FindTurn): Tool =>
  toolOf<{ readonly path: string; readonly line?: number; readonly limit?: number }>({
    title: 'Read in the editor',
    description: 'Reads a text file as the editor has it, with changes that are not saved yet',
    category: 'files',
    effects: ['read'],
    modes,
    parameters: objectOf(
      {
        path: PATH,
        line: { ...FROM_1, description: 'First line' },
        limit: { ...FROM_1, description: 'Number of lines' },
      },
      ['line', 'limit']
    ),
    async call({ path, line, limit }, ctx) {
      const turn = turnOf(find, ctx)
      const file = await fileOf(turn.session, path, false)
      return answerOf(await readFile(turn, file, { line, limit }, ctx.signal))
    },
  })

const writeTool = (modes: readonly string[], find: FindTurn): Tool =>
  toolOf<{ readonly path: string; readonly content: string }>({
    title: 'Write in the editor',
    description: 'Writes the whole text of a file in the editor, and creates the file if it is missing. The user must agree',
    category: 'files',
    effects: ['write'],
    asks: true,
    modes,
    parameters: objectOf({ path: PATH, content: { type: 'string', description: 'The new text of the file' } }),
    async call(args, ctx) {
      const turn = turnOf(find, ctx)
      if (!turn.editor.capabilities.fs?.writeTextFile) throw editorCannot('to write files')
      const call = turn.claim(WRITE, args)
      const path = await fileOf(turn.session, args.path, true)
      const change = await changeOf(turn, args, ctx.signal)
      const params = { sessionId: turn.session.id, path, content: args.content }
      await askEditor(turn, 'write the file', 'fs/write_text_file', params, ctx.signal)
      await turn.showContent(call, change, { locations: [{ path }] })
      return answerOf(`Wrote ${args.content.length} characters to ${args.path}.`)
    },
  })

/** Longest text that is shown as a change. */
const MAX_SHOWN = 1_000_000

/** The change of a write; nothing if the current text is not known. */
async function changeOf(turn: RunningTurn, args: Arguments, signal: AbortSignal): Promise<ToolCallContent[]> {
  const { path, content } = args
  if (typeof path !== 'string' || typeof content !== 'string' || content.length > MAX_SHOWN) return []
  try {
    const file = await fileOf(turn.session, path, true)
    const isThere = await turn.session.roots.find(file).then(
      () => true,
      () => false
    )
    const oldText = isThere ? await readFile(turn, file, {}, signal) : null
    if (oldText !== null && oldText.length > MAX_SHOWN) return []
    return [{ type: 'diff', path: file, oldText, newText: content }]
  } catch {
    // the write reports its own errors; without the current text there is nothing to compare
    signal.throwIfAborted()
    return []
  }
}

/** What a call would change, for the question to the user. */
export const previewOf: Editor['preview'] = async (turn, tool, args, signal) =>
  tool === WRITE ? changeOf(turn, args, signal) : []

// Terminals

/** Maximum running commands of a session. */
const MAX_TERMINALS = 16
/** Bytes of output that the editor keeps. */
const OUTPUT_BYTES = 100_000
const MAX_WAIT_S = 600
const WAIT_S = { type: 'integer', minimum: 0, maximum: MAX_WAIT_S }
/** The longest wait, and time for the requests around it. */
const CALL_MS = MAX_WAIT_S * 1_000 + 30_000
const TERMINAL = { type: 'string', minLength: 1, maxLength: 1_000, description: 'Id that editor_run_command returned' }

const inTerminal = ({ session }: RunningTurn, terminalId: string) => ({ sessionId: session.id, terminalId })

/** The output of a command, and how it ended. */
interface CommandState {
  readonly output: string
  readonly truncated: boolean
  readonly exit: { readonly exitCode: number | null; readonly signal: string | null } | undefined
}

async function stateOf(turn: RunningTurn, terminal: string, signal: AbortSignal): Promise<CommandState> {
  const { output, truncated, exitStatus } = await askEditor(
    turn,
    'read the output',
    'terminal/output',
    inTerminal(turn, terminal),
    signal
  )
  if (typeof output !== 'string') throw editorAnswerInvalid('read the output')
  const exit = isTree(exitStatus)
    ? {
        exitCode: typeof exitStatus.exitCode === 'number' ? exitStatus.exitCode : null,
        signal: typeof exitStatus.signal === 'string' ? exitStatus.signal : null,
      }
    : undefined
  return { output, truncated: truncated === true, exit }
}

/** Waits until the command has ended, or the time is over. */
async function waitFor(turn: RunningTurn, terminal: string, ms: number, signal: AbortSignal): Promise<void> {
  const over = AbortSignal.timeout(ms)
  try {
    const either = AbortSignal.any([signal, over])
    await askEditor(turn, 'wait for the command', 'terminal/wait_for_exit', inTerminal(turn, terminal), either)
  } catch (error) {
    signal.throwIfAborted()
    if (!over.aborted) throw error
  }
}

/** Ends a command if it is running, and frees its terminal. The editor keeps showing the output. */
async function release(turn: RunningTurn, terminal: string, signal: AbortSignal): Promise<void> {
  turn.session.terminals.delete(terminal)
  await askEditor(turn, 'release the terminal', 'terminal/release', inTerminal(turn, terminal), signal)
}

/** The result for the model. A command that has ended is released. */
async function report(turn: RunningTurn, terminal: string, signal: AbortSignal) {
  const { output, truncated, exit } = await stateOf(turn, terminal, signal)
  if (exit) await release(turn, terminal, signal)
  const state = exit
    ? `The command ended with ${exit.signal === null ? `exit code ${exit.exitCode ?? 'unknown'}` : `signal ${exit.signal}`}.`
    : `The command is still running. Its id is ${terminal}.`
  const begin = truncated ? ['[the beginning of the output is left out]'] : []
  return {
    ...answerOf([state, ...begin, output]),
    ...(exit && exit.exitCode !== 0 ? { isError: true } : {}),
  }
}

const runTool = (modes: readonly string[], find: FindTurn): Tool =>
  toolOf<{ readonly command: string; readonly args?: readonly string[]; readonly cwd?: string; readonly wait_s?: number }>({
    title: 'Run in the editor',
    description:
      'Runs a program in a terminal of the editor, without a sandbox, and returns its output. The user must agree. For a command line, run sh with the arguments -c and the line',
    category: 'shell',
    effects: ['read', 'write', 'execute', 'network'],
    asks: true,
    modes,
    timeoutMs: CALL_MS,
    parameters: objectOf(
      {
        command: { type: 'string', minLength: 1, maxLength: 4096, description: 'Program to run' },
        args: { type: 'array', maxItems: 1_000, items: { type: 'string' }, description: 'Its arguments' },
        cwd: { ...PATH, description: 'Folder; default: the folder of the project' },
        wait_s: { ...WAIT_S, default: 120, description: 'Seconds to wait for the end. Then the command runs on' },
      },
      ['args', 'cwd', 'wait_s']
    ),
    async call(given, ctx) {
      const { command, args = [], cwd, wait_s: waitS = 120 } = given
      const turn = turnOf(find, ctx)
      const { session } = turn
      if (!turn.editor.capabilities.terminal) throw editorCannot('terminals')
      if (session.terminals.size >= MAX_TERMINALS) throw terminalsFull(MAX_TERMINALS)
      const call = turn.claim(RUN, given)
      const folder = cwd === undefined ? session.cwd : await fileOf(session, cwd, false)
      const params = { sessionId: session.id, command, args, cwd: folder, outputByteLimit: OUTPUT_BYTES }
      const { terminalId } = await askEditor(turn, 'run the command', 'terminal/create', params, ctx.signal)
      if (typeof terminalId !== 'string') throw editorAnswerInvalid('run the command')
      session.terminals.add(terminalId)
      try {
        await turn.showContent(call, [{ type: 'terminal', terminalId }])
        await waitFor(turn, terminalId, waitS * 1_000, ctx.signal)
        return await report(turn, terminalId, ctx.signal)
      } catch (error) {
        // the model has not got its id, so nothing else would end the command
        await leave(turn, terminalId)
        throw error
      }
    },
  })

const LEAVE_MS = 5_000

async function leave(turn: RunningTurn, terminal: string): Promise<void> {
  await release(turn, terminal, AbortSignal.timeout(LEAVE_MS)).catch((err: unknown) =>
    turn.editor.services.log.debug({ err }, 'failed to release a terminal of the editor')
  )
}

function mustRun({ session }: RunningTurn, terminal: string): void {
  if (!session.terminals.has(terminal)) throw terminalUnknown(terminal)
}

const outputTool = (modes: readonly string[], find: FindTurn): Tool =>
  toolOf<{ readonly id: string; readonly wait_s?: number }>({
    title: 'Output of a command in the editor',
    description: 'Returns the output of a command that editor_run_command left running',
    category: 'shell',
    effects: ['read'],
    modes,
    timeoutMs: CALL_MS,
    parameters: objectOf({ id: TERMINAL, wait_s: { ...WAIT_S, default: 0, description: 'Seconds to wait for the end first' } }, [
      'wait_s',
    ]),
    async call({ id, wait_s: waitS = 0 }, ctx) {
      const turn = turnOf(find, ctx)
      mustRun(turn, id)
      if (waitS > 0) await waitFor(turn, id, waitS * 1_000, ctx.signal)
      return report(turn, id, ctx.signal)
    },
  })

const stopTool = (modes: readonly string[], find: FindTurn): Tool =>
  toolOf<{ readonly id: string }>({
    title: 'Stop a command in the editor',
    description: 'Stops a command that editor_run_command left running, and returns its output',
    category: 'shell',
    effects: ['execute'],
    modes,
    parameters: objectOf({ id: TERMINAL }),
    async call({ id }, ctx) {
      const turn = turnOf(find, ctx)
      mustRun(turn, id)
      await askEditor(turn, 'stop the command', 'terminal/kill', inTerminal(turn, id), ctx.signal)
      const { output } = await stateOf(turn, id, ctx.signal)
      await release(turn, id, ctx.signal)
      return answerOf(['The command is stopped.', output])
    },
  })
