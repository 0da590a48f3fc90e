import { execFileSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { expect } from 'chai'
import { wait } from './wait.ts'
import { newHome, post, type Service, startService } from './service.ts'

/** A project folder with configuration, a repository, a plugin, definitions, and a marker that appears when code of an attacker runs. */
export interface Project extends AsyncDisposable {
  readonly folder: string
  readonly home: string
  at(...names: string[]): string
  read(name: string): Promise<string>
  readonly ran: () => boolean
  /** A module that leaves the marker. */
  readonly code: string
  names(folder?: string): Promise<string[]>
}

/** Makes the folder; `files` by their paths in it. */
export async function newProject(config: object, files: Readonly<Record<string, string>> = {}): Promise<Project> {
  const folder = await mkdtemp(join(tmpdir(), 'svc-project-'))
  const home = await newHome()
  const marker = join(tmpdir(), `svc-marker-${process.pid}-${Math.random().toString(36).slice(2)}`)
  const at = (...names: string[]) => join(folder, ...names)
  const all = { 'svc.config.json': JSON.stringify(config, null, 2), 'notes/a.txt': 'a\n', ...files }
  for (const [name, text] of Object.entries(all)) {
    await mkdir(dirname(at(name)), { recursive: true })
    await writeFile(at(name), text)
  }
  execFileSync('git', ['init', '--quiet', folder])
  return {
    folder,
    home,
    at,
    read: name => readFile(at(name), 'utf8'),
    ran: () => existsSync(marker),
    code: `import { writeFileSync } from 'node:fs'\nwriteFileSync(${JSON.stringify(marker)}, 'ran')\nexport default { name: 'x', nodes: {} }\n`,
    names: async (name = '.') => (await readdir(at(name))).sort(),
    async [Symbol.asyncDispose]() {
      await Promise.all([folder, home, marker].map(path => rm(path, { recursive: true, force: true })))
    },
  }
}

export interface Outcome {
  readonly success: boolean
  readonly error?: string
}

/** What a model does: it calls a tool. */
export async function modelCalls(service: Service, tool: string, args: object): Promise<Outcome> {
  const { status, body } = await post(`${service.url}/api/v1/chat`, { message: `/tool ${tool} ${JSON.stringify(args)}` })
  expect(status, JSON.stringify(body)).to.equal(200)
  return (body.tools_used as Outcome[])[0]!
}

/** What a token with the scope `tools` does. */
export async function clientCalls(service: Service, tool: string, args: object) {
  const { status, body } = await post(`${service.url}/tools/${tool}/call`, { arguments: args })
  return { status, text: JSON.stringify(body) }
}

/** Resolves once a file is there. */
export async function appears(file: string): Promise<void> {
  while (!existsSync(file)) await wait()
}

/** Starts svc in the folder, with tools for clients. */
export const startIn = ({ folder, home }: Project, args: readonly string[] = []) =>
  startService({ home, cwd: folder, args: ['--config', 'svc.config.json', '--mcp', ...args] })
