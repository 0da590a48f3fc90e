import { randomUUID } from 'node:crypto'
import { mkdir, open, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { dirname } from 'node:path'
import { codeOf, shownPath } from '@svc/core'
import type { Document } from 'yaml'
import { fileBusy, nameTaken, notInFile } from './errors.ts'
import { readHomeFile } from './home-file.ts'
import type { McpClientConfig } from './settings.ts'

type Yaml = typeof import('yaml')

const FIRST = `# Tool servers (MCP) that svc connects to, with the keys of mcp.clients (docs/guides/bridge-mcp-servers.md). svc mcp add and svc mcp remove write here; what you write stays.
# It may hold keys: keep it to yourself.
clients: []
`

/** Adds servers at the end of the file; what a person wrote there stays as it is. Throws MCP_CLIENT_INVALID for a file that has faults, and for a name that another command has added meanwhile. */
export const addToFile = (file: string, entries: readonly McpClientConfig[]): Promise<void> =>
  edit(file, (document, { isSeq }, there) => {
    const twice = entries.find(({ name }) => there.includes(name))
    if (twice) throw nameTaken(twice.name, shownPath(file))
    for (const entry of entries) document.addIn(['clients'], document.createNode(entry))
    const list = document.get('clients')
    if (isSeq(list)) list.flow = false
  })

/** Takes a server out of the file. Throws MCP_SERVER_UNKNOWN where it is not in there. */
export const removeFromFile = (file: string, name: string, hint: string): Promise<void> =>
  edit(file, (document, { isMap, isSeq }) => {
    const list = document.get('clients')
    const at = isSeq(list) ? list.items.findIndex(item => isMap(item) && item.get('name') === name) : -1
    if (at < 0) throw notInFile(name, shownPath(file), hint)
    document.deleteIn(['clients', at])
  })

/** One change at a time: of two commands that read the same file, the later one would write over what the earlier one has added. */
async function edit(file: string, change: (document: Document, yaml: Yaml, names: readonly string[]) => void): Promise<void> {
  await mkdir(dirname(file), { recursive: true, mode: 0o700 })
  using _lock = await lockFor(file)
  const { entries, problems } = await readHomeFile(file)
  for (const problem of problems) throw problem
  // only commands come here, and what they share with the server is one file of the build
  const yaml = await import('yaml')
  const document = yaml.parseDocument(await textOf(file))
  if (!document.has('clients')) document.set('clients', document.createNode([]))
  change(
    document,
    yaml,
    entries.map(({ entry }) => entry.name)
  )
  await replace(file, document.toString({ lineWidth: 0 }))
}

/** Milliseconds that a command waits for others. */
const WAIT_MS = 10_000

/** A lock of the kernel, by way of SQLite: it ends with the process that holds it. Its file stays, empty: to remove it would let two hold one each. */
async function lockFor(file: string): Promise<Disposable> {
  const path = `${file}.lock`
  await (await open(path, 'a', 0o600)).close()
  const { DatabaseSync } = await import('node:sqlite')
  const lock = new DatabaseSync(path, { timeout: WAIT_MS })
  try {
    lock.exec('PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE')
    return lock
  } catch (error) {
    lock.close()
    throw fileBusy(shownPath(file), error)
  }
}

const textOf = (file: string): Promise<string> =>
  readFile(file, 'utf8').catch((error: unknown) => {
    if (codeOf(error) === 'ENOENT') return FIRST
    throw error
  })

/** Nobody else may read it, and nobody ever reads half of it. */
async function replace(file: string, text: string): Promise<void> {
  const next = `${file}.${randomUUID()}`
  try {
    await writeFile(next, text, { mode: 0o600, flag: 'wx' })
    await rename(next, file)
  } catch (error) {
    await rm(next, { force: true })
    throw error
  }
}
