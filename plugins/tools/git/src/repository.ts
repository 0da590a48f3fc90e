import { readdir, readFile, realpath, stat } from 'node:fs/promises'
import { dirname, isAbsolute, join, relative, resolve } from 'node:path'
import { codeOf, type CallContext } from '@svc/core'
import { type Folder, openFolder, type Place, realOf, type Roots } from '@svc/safe-fs'
import type { Semaphore } from '@svc/plugin-kit'
import { environment, type GitAnswer, runGit, type Setting, withoutFilter } from './run-git.ts'
import { gitFailed, leadsOut, noRepository, outsideRepository, refInvalid, refUnknown } from './errors.ts'
import type { GitConfig } from './settings.ts'

/** Where the tools work, and how. */
export interface GitContext {
  readonly roots: Roots
  readonly config: GitConfig
  /** For the processes of git that run at the same time. */
  readonly processes: Semaphore
}

/** What a command may say besides its arguments. */
interface Options {
  readonly most?: number
  readonly input?: string | Buffer
  /** Takes whatever it answers: git tells by its exit code, too. */
  readonly anyCode?: boolean
}

/** A repository that lies within the roots, with its working tree. */
export interface Repository extends AsyncDisposable {
  /** Its working tree, as the other tools for files name it. */
  readonly shown: string
  /** A path of git in the same way. */
  tell(path: string): string
  /** Its own folder, by which works in it are told apart. */
  readonly key: string
  /** Names of filters that the repository itself brings. */
  readonly filters: readonly string[]
  run(args: readonly string[], options?: Options): Promise<GitAnswer>
  /** The hash of a commit. Throws GIT_UNKNOWN_REVISION. */
  commit(ref: string): Promise<string>
  /** The hash of the commit that is checked out; `undefined` before the first one. */
  head(): Promise<string | undefined>
  /** Paths as git writes them, seen from the working tree. */
  paths(paths: readonly string[]): Promise<string[]>
}

/** Opens the repository that a folder lies in. Throws GIT_NO_REPOSITORY, GIT_OUTSIDE, GIT_UNSAFE, GIT_BARE, PATH_OUTSIDE, …. */
export async function openRepository(
  { roots, config, processes }: GitContext,
  path: string,
  ctx: CallContext,
  trusted = false
): Promise<Repository> {
  const own: Setting[] = config.author
    ? [
        ['user.name', config.author.name],
        ['user.email', config.author.email],
      ]
    : []
  const ceilings = roots.all.map(root => dirname(root.real))
  const start =
    (folder: Folder, settings: readonly Setting[]) =>
    async (args: readonly string[], options: Options = {}) => {
      const { most = config.max_bytes, input, anyCode } = options
      const env = environment(ceilings, settings, trusted)
      const limits = { signal: ctx.signal, most, timeoutMs: config.timeout_ms, ...(input === undefined ? {} : { input }) }
      using _place = await processes.take(ctx.principal.id, ctx.signal)
      const answer = await runGit(['--no-pager', ...args], { cwd: cwdOf(folder), env, ...limits })
      if (answer.code !== 0 && !answer.truncated && !anyCode) throw gitFailed(answer.stderr)
      return answer
    }
  const { top, key } = await locate(roots, path, start)
  const folder = await openFolder(roots, top)
  try {
    const filters = await filtersOf(start(folder, own))
    const run = start(folder, trusted ? own : [...own, ...filters.flatMap(withoutFilter)])
    return {
      shown: top.shown,
      tell: path => (top.shown === '.' ? path : `${top.shown}/${path}`),
      key,
      filters,
      run,
      commit: ref => commitOf(run, ref),
      head: () => commitOf(run, 'HEAD').catch(() => undefined),
      paths: paths => Promise.all(paths.map(one => pathIn(roots, top.real, one))),
      [Symbol.asyncDispose]: () => folder.handle.close(),
    }
  } catch (error) {
    await folder.handle.close()
    throw error
  }
}

/** Does something in the repository that a call names, and closes it again. */
export async function inRepository<T>(
  gitContext: GitContext,
  path: string | undefined,
  ctx: CallContext,
  work: (repository: Repository) => Promise<T>
): Promise<T> {
  ctx.signal.throwIfAborted()
  await using repository = await openRepository(gitContext, path ?? '.', ctx)
  return await work(repository)
}

type Run = Repository['run']
type Start = (folder: Folder, settings: readonly Setting[]) => Run

// By the descriptor: the folder that was checked, whatever is put in its place. It is ours, not the child's, so by our number.
const cwdOf = (folder: Folder) => folder.at('.').replace('/proc/self/', `/proc/${process.pid}/`)

/** Finds working tree and folder of the repository, and that both, and its objects, lie within the roots. */
async function locate(roots: Roots, path: string, start: Start): Promise<{ top: Place; key: string }> {
  if (roots.isAll(path)) throw noRepository(path)
  await using folder = await openFolder(roots, await roots.find(path))
  const question = ['rev-parse', '--path-format=absolute', '--show-toplevel', '--git-common-dir', '--absolute-git-dir']
  const { stdout, stderr, code } = await start(folder, [])(question, { anyCode: true })
  if (/not a git repository|cannot use bare repository/.test(stderr)) throw noRepository(path)
  if (code !== 0) throw gitFailed(stderr)
  const [top, common, own] = stdout.toString().split('\n')
  const places = { 'working tree': top!, 'git folder': own!, 'shared git folder': common! }
  const reals: string[] = []
  for (const [what, place] of Object.entries(places)) reals.push(await within(roots, place, what))
  for (const folder of new Set(reals.slice(1))) await checkGitFolder(roots, folder)
  await checkObjects(roots, `${reals[2]!}/objects`)
  return { top: await roots.find(reals[0]!), key: reals[2]! }
}

/** Names of filters in the settings of the repository; those of the person who runs svc are trusted. */
async function filtersOf(run: Run): Promise<string[]> {
  const { stdout, code, stderr } = await run(['config', '-z', '--show-scope', '--get-regexp', '^filter\\.'], { anyCode: true })
  if (code !== 0 && code !== 1) throw gitFailed(stderr)
  const parts = stdout.toString().split('\0')
  const names = new Set<string>()
  for (let at = 0; at + 1 < parts.length; at += 2) {
    const [, name] = /^filter\.([^]*)\.[^.\n]*(?:\n|$)/.exec(parts[at + 1]!.split('\n')[0]!) ?? []
    if (name !== undefined && !/^(global|system|command)$/.test(parts[at]!)) names.add(name)
  }
  return [...names]
}

// oxlint-disable-next-line no-control-regex -- what no name of a commit holds
const REF = /^[^-\u0000-\u001f\u007f][^\u0000-\u001f\u007f]{0,299}$/

async function commitOf(run: Run, ref: string): Promise<string> {
  if (!REF.test(ref)) throw refInvalid(ref)
  const { stdout, code } = await run(['rev-parse', '--verify', '--quiet', `${ref}^{commit}`], { anyCode: true })
  const hash = stdout.toString().trim()
  if (code !== 0 || !/^[0-9a-f]{40,64}$/.test(hash)) throw refUnknown(ref)
  return hash
}

/** A path as git writes it. It need not exist: git knows files that are gone. */
async function pathIn(roots: Roots, top: string, path: string): Promise<string> {
  const real = await roots.target(path).then(realOf, async (error: unknown) => {
    if (codeOf(error) === 'PATH_PROTECTED') return (await roots.find(path)).real
    throw error
  })
  const inner = relative(top, real)
  if (inner === '..' || inner.startsWith('../') || isAbsolute(inner)) throw outsideRepository(path)
  return inner || '.'
}

/** A path without links, where it lies within the roots. Throws GIT_OUTSIDE; `what` is the word for what leads out. */
async function within(roots: Roots, path: string, what: string): Promise<string> {
  const real = await realpath(path).catch(() => '')
  if (!isAbsolute(real) || !roots.holds(real)) throw leadsOut(what)
  return real
}

/** Checks that nothing which git reads of a repository leads out of the roots: of one outside it would show what is in that. Throws GIT_OUTSIDE. */
async function checkGitFolder(roots: Roots, folder: string): Promise<void> {
  await checkLinks(roots, folder, { what: 'git folder', recursive: false })
}

/** The same for its objects, and for those that it borrows, which may borrow in turn. */
async function checkObjects(roots: Roots, objects: string, what = 'store of objects', stores = new Set<string>()) {
  const real = await within(roots, objects, what)
  if (stores.has(real)) return
  stores.add(real)
  await checkLinks(roots, real, { what, recursive: true })
  for (const line of (await borrowed(real)).split('\n'))
    if (line !== '' && !line.startsWith('#')) await checkObjects(roots, resolve(real, line), 'borrowed store of objects', stores)
}

interface How {
  readonly what: string
  readonly recursive: boolean
}

/** A folder that a link leads to may have links of its own. */
async function checkLinks(roots: Roots, folder: string, how: How, seen = new Set<string>()) {
  const real = await within(roots, folder, how.what)
  if (seen.has(real)) return
  seen.add(real)
  const entries = await readdir(real, { withFileTypes: true, recursive: how.recursive }).catch(() => undefined)
  if (entries === undefined) throw leadsOut(how.what)
  for (const entry of entries) {
    if (!entry.isSymbolicLink()) continue
    const path = join(entry.parentPath, entry.name)
    const target = await stat(path).catch(() => undefined)
    if (target?.isDirectory() && how.recursive) await checkLinks(roots, path, how, seen)
    // one that leads to nothing shows nothing: editors make such
    else if (target !== undefined) await within(roots, path, how.what)
  }
}

/** What a store of objects says of where more are. */
async function borrowed(objects: string): Promise<string> {
  const file = join(objects, 'info', 'alternates')
  const stats = await stat(file).catch(() => undefined)
  if (stats === undefined) return ''
  // to read a pipe would hold a thread of ours for ever
  if (!stats.isFile()) throw leadsOut('store of objects')
  return readFile(file, 'utf8').catch(() => Promise.reject(leadsOut('store of objects')))
}
