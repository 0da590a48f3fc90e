import { execFile } from 'node:child_process'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import type { ConfigTree } from '@svc/core'
import { type Json, type Run, type Waiting, Workflows } from '@svc/core/contracts'
import { testHost, testContext } from '@svc/testing'
import { pluginFolder } from './plugin-folder.ts'

const run = promisify(execFile)

/** All that workflows with a model and tools stand on; the model is provider-local. */
const PLUGINS = [
  'store-memory',
  'queue-store',
  'workflow-nodes',
  'workflows',
  'teams',
  'verticals',
  'recommend',
  'chat',
  'model-calls',
  'conversations',
  'selection',
  'modes',
  'provider-local',
  'tools-files',
  'tools-search',
  'tools-git',
  'tools-text',
  'tools-time',
  'tools-web',
  'tools-code',
  'sandbox-quickjs',
]
const ENDS_MS = 60_000

/** Answers what a run waits for: a question by its node, an event by its name. */
export type Answers = Readonly<Record<string, Json>>

const commit = (folder: string, subject: string) =>
  run('git', ['-c', 'user.name=Ada', '-c', 'user.email=ada@example.com', 'commit', '-qam', subject], { cwd: folder })

/** A folder with these files; what `change` has comes with a second commit. */
async function layOut(files: Readonly<Record<string, string>>, change: Readonly<Record<string, string>>): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'svc-room-'))
  const put = async (all: Readonly<Record<string, string>>) => {
    for (const [name, text] of Object.entries(all)) {
      await mkdir(dirname(join(folder, name)), { recursive: true })
      await writeFile(join(folder, name), text)
    }
    await run('git', ['add', '.'], { cwd: folder })
  }
  await run('git', ['init', '-q', '-b', 'main'], { cwd: folder })
  await put(files)
  await commit(folder, 'Begin')
  await put(change)
  await commit(folder, 'Fix the sum of the cart')
  return folder
}

export interface RoomOptions {
  readonly files: Readonly<Record<string, string>>
  readonly change: Readonly<Record<string, string>>
  /** More plugins, by the folder. */
  readonly plugins?: readonly string[]
  readonly config?: (folder: string) => ConfigTree
}

/** A host with models, tools, teams and workflows over a folder that is a git repository. */
export async function openRoom({ files, change, plugins = [], config = () => ({}) }: RoomOptions) {
  const folder = await layOut(files, change)
  const ctx = testContext()
  const host = await testHost([...PLUGINS, ...plugins].map(pluginFolder), {
    config: { providers: { local: {} }, tools: { files: { roots: [folder] } }, ...config(folder) },
  })
  const workflows = host.service(Workflows)
  const reply = (id: string, { step, node, event, ask }: Waiting, answers: Answers) => {
    const data = answers[event ?? node]
    if (data === undefined) throw new Error(`the run waits at ${node}, and the test has no answer`)
    return ask ? workflows.answer(id, { step, value: data }, ctx) : workflows.signal(id, { name: event!, data }, ctx)
  }
  /** Sees a run to its end: follows what happens, and answers. */
  const ended = async (id: string, answers: Answers = {}): Promise<Run> => {
    for await (const { type } of workflows.events(id, 0, { ...ctx, signal: AbortSignal.timeout(ENDS_MS) })) {
      if (type !== 'node_waiting') continue
      for (const waiting of (await workflows.get(id, ctx)).waiting)
        if (waiting.ask !== undefined || waiting.event !== undefined) await reply(id, waiting, answers)
    }
    return workflows.get(id, ctx)
  }
  const play = async (workflow: string, { answers = {}, ...more }: { input?: Json; parameters?: Json; answers?: Answers } = {}) =>
    ended((await workflows.start({ workflow, ...more }, ctx)).id, answers)
  const close = async () => {
    await host.close()
    await rm(folder, { recursive: true, force: true })
  }
  return { host, folder, ctx, workflows, ended, play, close }
}
