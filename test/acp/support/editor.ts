// Not a unit test: it starts processes
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { PassThrough, Readable, Writable } from 'node:stream'
import { text } from 'node:stream/consumers'
import {
  client,
  type ClientApp,
  type ClientCapabilities,
  methods,
  ndJsonStream,
  type RequestPermissionRequest,
  type RequestPermissionResponse,
  type SessionUpdate,
} from '@agentclientprotocol/sdk'
import { COMPILED, SVC } from '../../support/entry.ts'

/** A home and a project folder. */
export interface Project extends AsyncDisposable {
  readonly home: string
  readonly folder: string
  write(name: string, content: string): Promise<string>
  read(name: string): Promise<string>
  /** Starts a svc command in the folder. */
  start(args: readonly string[]): ChildProcess
}

export async function makeProject(files: Readonly<Record<string, string>> = {}): Promise<Project> {
  const base = await mkdtemp(join(tmpdir(), 'svc-acp-'))
  const folder = join(base, 'project')
  const home = join(base, 'home')
  await mkdir(folder)
  const running = new Set<ChildProcess>()
  const project: Project = {
    home,
    folder,
    async write(name, content) {
      const file = join(folder, name)
      await mkdir(dirname(file), { recursive: true })
      await writeFile(file, content)
      return file
    },
    read: name => readFile(join(folder, name), 'utf8'),
    start(args) {
      const child = spawn(process.execPath, [...SVC, ...args], {
        cwd: folder,
        env: { ...COMPILED, PATH: process.env.PATH, HOME: base, SVC_HOME: home, SVC_TRUST_CONFIG: '1' },
        stdio: ['pipe', 'pipe', 'pipe'],
      })
      running.add(child)
      child.once('exit', () => running.delete(child))
      for (const stream of child.stdio) stream?.on('error', () => {})
      return child
    },
    async [Symbol.asyncDispose]() {
      await Promise.all([...running].map(child => (child.kill('SIGKILL'), once(child, 'exit'))))
      await rm(base, { recursive: true, force: true, maxRetries: 5 })
    },
  }
  for (const [name, content] of Object.entries(files)) await project.write(name, content)
  return project
}

interface EditorOptions {
  readonly args?: readonly string[]
  readonly capabilities?: ClientCapabilities
  /** Adds handlers of the editor. */
  readonly serve?: (app: ClientApp) => ClientApp
  /** Answers permission requests; default: never asked for. */
  readonly permit?: (request: RequestPermissionRequest, signal: AbortSignal) => Promise<RequestPermissionResponse>
}

type Update<K extends SessionUpdate['sessionUpdate']> = Extract<SessionUpdate, { sessionUpdate: K }>

/** Updates by session, in their order. */
class Updates {
  readonly all: { readonly sessionId: string; readonly update: SessionUpdate }[] = []
  #waiting: (() => void)[] = []

  add(sessionId: string, update: SessionUpdate): void {
    this.all.push({ sessionId, update })
    for (const wake of this.#waiting.splice(0)) wake()
  }

  of<K extends SessionUpdate['sessionUpdate']>(sessionId: string, kind: K): Update<K>[] {
    return this.all.flatMap(item =>
      item.sessionId === sessionId && item.update.sessionUpdate === kind ? [item.update as Update<K>] : []
    )
  }

  text(sessionId: string, kind: 'agent_message_chunk' | 'user_message_chunk' = 'agent_message_chunk'): string {
    return this.of(sessionId, kind)
      .map(({ content }) => (content.type === 'text' ? content.text : ''))
      .join('')
  }

  /** All updates of one tool call, merged as an editor does. */
  call(sessionId: string, at = 0) {
    const first = this.of(sessionId, 'tool_call')[at]
    if (!first) throw new Error(`there is no tool call ${at}`)
    const more = this.of(sessionId, 'tool_call_update').filter(update => update.toolCallId === first.toolCallId)
    return { first, more, last: Object.assign({}, first, ...more) as typeof first }
  }

  async until(found: () => boolean): Promise<void> {
    while (!found()) await new Promise<void>(resolve => this.#waiting.push(resolve))
  }
}

/** An editor, made with the client of the SDK, and the process of `svc acp` that it has started. */
export async function openEditor(project: Project, { args = [], capabilities = {}, serve, permit }: EditorOptions = {}) {
  const child = project.start(['acp', ...args])
  const err = text(child.stderr!)
  const closed = once(child, 'close') as Promise<[number | null, NodeJS.Signals | null]>
  const copy = new PassThrough()
  const out = text(copy)
  const input = child.stdout!.pipe(new PassThrough())
  // a destroyed stream does not end the one that it is piped into
  child.once('close', () => input.end())
  for (const output of [err, out]) output.catch(() => {})
  child.stdout!.pipe(copy)
  const updates = new Updates()
  const app = client({ name: 'test' }).onNotification(methods.client.session.update, ({ params }) =>
    updates.add(params.sessionId, params.update)
  )
  if (permit) app.onRequest(methods.client.session.requestPermission, ({ params, signal }) => permit(params, signal))
  serve?.(app)
  const connection = app.connect(
    ndJsonStream(
      Writable.toWeb(child.stdin!) as WritableStream<Uint8Array>,
      Readable.toWeb(input) as unknown as ReadableStream<Uint8Array>
    )
  )
  const { agent } = connection
  const initialized = await Promise.race([
    agent.request(methods.agent.initialize, { protocolVersion: 1, clientCapabilities: capabilities }),
    closed.then(async ([code]) => Promise.reject(new Error(`svc acp ended with ${code}:\n${await err}`))),
  ])
  return {
    process: child,
    agent,
    initialized,
    updates,
    closed,
    newSession: (cwd = project.folder, more: { mcpServers?: never[] } = {}) =>
      agent.request(methods.agent.session.new, { cwd, mcpServers: [], ...more }),
    prompt: (sessionId: string, words: string) =>
      agent.request(methods.agent.session.prompt, { sessionId, prompt: [{ type: 'text', text: words }] }),
    /** Closes the input; resolves with the exit code and both outputs. */
    async end() {
      child.stdin!.end()
      const [code] = await closed
      return { code, out: await out, err: await err }
    },
  }
}

export type Editor = Awaited<ReturnType<typeof openEditor>>

/** The error of a request: code, message and data. */
export async function errorOf(request: Promise<unknown>): Promise<{ code: number; message: string; data?: unknown }> {
  try {
    await request
  } catch (error) {
    return error as { code: number; message: string; data?: unknown }
  }
  throw new Error('the request did not fail')
}
