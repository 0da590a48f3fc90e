import { readdir, readFile, realpath, stat } from 'node:fs/promises'
import { dirname, isAbsolute, join, relative, resolve } from 'node:path'
import { codeOf, type CallContext } from '@svc/core'
import { type Folder, openFolder, type ResolvedPath, realOf, type Roots } from '@svc/safe-fs'
import type { Semaphore } from '@svc/plugin-kit'
import { environment, type GitAnswer, runGit, type Setting, withoutFilter } from './run-git.ts'
import { gitFailed, leadsOut, noRepository, outsideRepository, refInvalid, refUnknown } from './errors.ts'
import type { GitConfig } from './settings.ts'

/** Roots, settings and process limit of the tools. */
export interface GitContext {
  readonly roots: Roots
  readonly config: GitConfig
  /** Limits concurrent git processes. */
  readonly semaphore: Semaphore
}

/** Options of a git command. */
interface Options {
  readonly most?: number
  readonly input?: string | Buffer
  /** Accepts any exit code. */
  readonly anyCode?: boolean
}

/** A repository with its working tree, within the roots. */
export interface Repository extends AsyncDisposable {
  /** The displayed path of its working tree. */
  readonly shown: string
  /** The displayed path of a file in the repository. */
  displayPath(path: string): string
  /** Its git folder, used as the key of locks. */
  readonly key: string
  /** Names of filters in the settings of the repository. */
  readonly filters: readonly string[]
  run(args: readonly string[], options?: Options): Promise<GitAnswer>
  /** The hash of a commit. Throws GIT_UNKNOWN_REVISION. */
  commit(ref: string): Promise<string>
  /** The hash of the checked-out commit; `undefined` before the first commit. */
  head(): Promise<string | undefined>
  /** Paths relative to the working tree. */
  paths(paths: readonly string[]): Promise<string[]>
}

/** Opens the repository that contains a folder. Throws GIT_NO_REPOSITORY, GIT_OUTSIDE, GIT_UNSAFE, GIT_BARE, PATH_OUTSIDE, …. */
export async function openRepository(
  { roots, config, semaphore }: GitContext,
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
      using _place = await semaphore.take(ctx.principal.id, ctx.signal)
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
      displayPath: path => (top.shown === '.' ? path : `${top.shown}/${path}`),
      key,
      filters,
      run,
      commit: ref => commitOf(run, ref),
      head: () => commitOf(run, 'HEAD').catch(() => undefined),
      paths: paths => Promise.all(paths.map(item => pathIn(roots, top.real, item))),
      [Symbol.asyncDispose]: () => folder.handle.close(),
    }
  } catch (error) {
    await folder.handle.close()
    throw error
  }
}

/** Runs a function with the repository of a call, then closes it. */
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

// Through the descriptor, so that it is the folder that was checked. The descriptor belongs to this process, not to the child, so use our process id.
const cwdOf = (folder: Folder) => folder.at('.').replace('/proc/self/', `/proc/${process.pid}/`)

/** Finds the working tree and the git folder of a repository, and checks that they and the objects are within the roots. */
async function locate(roots: Roots, path: string, start: Start): Promise<{ top: ResolvedPath; key: string }> {
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

/** Names of filters in the settings of the repository. Filters of the user who runs svc are trusted. */
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

// oxlint-disable-next-line no-control-regex -- characters that no commit name contains
const REF = /^[^-\u0000-\u001f\u007f][^\u0000-\u001f\u007f]{0,299}$/

async function commitOf(run: Run, ref: string): Promise<string> {
  if (!REF.test(ref)) throw refInvalid(ref)
  const { stdout, code } = await run(['rev-parse', '--verify', '--quiet', `${ref}^{commit}`], { anyCode: true })
  const hash = stdout.toString().trim()
  if (code !== 0 || !/^[0-9a-f]{40,64}$/.test(hash)) throw refUnknown(ref)
  return hash
}

/** A path relative to the working tree. It need not exist, because git knows deleted files. */
async function pathIn(roots: Roots, top: string, path: string): Promise<string> {
  const real = await roots.target(path).then(realOf, async (error: unknown) => {
    if (codeOf(error) === 'PATH_PROTECTED') return (await roots.find(path)).real
    throw error
  })
  const inner = relative(top, real)
  if (inner === '..' || inner.startsWith('../') || isAbsolute(inner)) throw outsideRepository(path)
  return inner || '.'
}

/** Resolves links of a path within the roots. Throws GIT_OUTSIDE; `what` describes the path. */
async function within(roots: Roots, path: string, what: string): Promise<string> {
  const real = await realpath(path).catch(() => '')
  if (!isAbsolute(real) || !roots.holds(real)) throw leadsOut(what)
  return real
}

/** Checks that no file that git reads in a repository leads out of the roots. Throws GIT_OUTSIDE. */
async function checkGitFolder(roots: Roots, folder: string): Promise<void> {
  await checkLinks(roots, folder, { what: 'git folder', recursive: false })
}

/** The same for its objects, and recursively for borrowed object stores. */
async function checkObjects(roots: Roots, objects: string, what = 'object store', stores = new Set<string>()) {
  const real = await within(roots, objects, what)
  if (stores.has(real)) return
  stores.add(real)
  await checkLinks(roots, real, { what, recursive: true })
  for (const line of (await borrowed(real)).split('\n'))
    if (line !== '' && !line.startsWith('#')) await checkObjects(roots, resolve(real, line), 'borrowed object store', stores)
}

interface How {
  readonly what: string
  readonly recursive: boolean
}

/** Checks links in a folder, and in folders that they lead to. */
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
    // a dangling link reveals nothing; editors create such links
    else if (target !== undefined) await within(roots, path, how.what)
  }
}

/** The alternates file of an object store. */
async function borrowed(objects: string): Promise<string> {
  const file = join(objects, 'info', 'alternates')
  const stats = await stat(file).catch(() => undefined)
  if (stats === undefined) return ''
  // reading a pipe would block a thread
  if (!stats.isFile()) throw leadsOut('object store')
  return readFile(file, 'utf8').catch(() => Promise.reject(leadsOut('object store')))
}
