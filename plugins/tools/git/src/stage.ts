import { tooManyChanges } from './errors.ts'
import type { Repository } from './repository.ts'

// `git add` and `git commit --all` start `git status` in each repository within this one, with its settings: its filters would be run, and no setting of ours
// forbids it for good (`submodule.<name>.ignore` lies in the repository). So what is staged is told by commands that never look into them.

/** Bytes of the paths that one commit stages. */
const MOST = 16_777_216

/**
 * Stages what has changed in files that git knows, in all or in some of them; and, with `others`, those it does not know yet. What it returns takes that back:
 * these paths are staged as they were before.
 */
export async function stage(repository: Repository, only: readonly string[], others: boolean): Promise<() => Promise<void>> {
  const changed = await pathsOf(repository, ['--modified', '--deleted'], only)
  const added = others ? await pathsOf(repository, ['--others', '--exclude-standard'], only) : []
  // Those that are gone first: a folder may have taken the place of a file.
  const paths = [...new Set([...changed, ...added])]
  if (paths.length === 0) return async () => {}
  const before = await stagedAs(repository, only, new Set(paths))
  await repository.run(['update-index', '--add', '--replace', '--remove', '-z', '--stdin'], { input: lines(paths) })
  return async () => {
    const gone = paths.map(path => `0 ${NO_OBJECT}\t${path}`)
    await repository.run(['update-index', '--replace', '-z', '--index-info'], { input: lines([...gone, ...before]) })
  }
}

/** The hash that stands for nothing, as long as hashes mostly are: git takes it for a path that goes. */
const NO_OBJECT = '0'.repeat(40)

const lines = (texts: readonly string[]) => Buffer.from(texts.map(text => `${text}\0`).join(''), 'latin1')

/** What the index has for these paths, as `update-index --index-info` takes it. */
async function stagedAs(repository: Repository, only: readonly string[], paths: ReadonlySet<string>): Promise<string[]> {
  const { stdout } = await repository.run(['ls-files', '-z', '--stage', '--', ...only], { most: MOST })
  return stdout
    .toString('latin1')
    .split('\0')
    .filter(entry => paths.has(entry.slice(entry.indexOf('\t') + 1)))
}

/** Paths as git writes them, a character for each byte: they need not be UTF-8. */
async function pathsOf(repository: Repository, which: readonly string[], only: readonly string[]): Promise<string[]> {
  const { stdout, truncated } = await repository.run(['ls-files', '-z', ...which, '--', ...only], { most: MOST })
  if (truncated) throw tooManyChanges()
  // What ends like a folder is a repository of its own that this one does not know: it stays so.
  return stdout
    .toString('latin1')
    .split('\0')
    .filter(path => path !== '' && !path.endsWith('/'))
}

/** Whether what is staged differs from the last commit, in all files or in some; also where a merge is to be concluded. */
export async function hasStaged(repository: Repository, only: readonly string[]): Promise<boolean> {
  const merge = await repository.run(['rev-parse', '--verify', '--quiet', 'MERGE_HEAD'], { anyCode: true })
  if (merge.code === 0) return true
  if ((await repository.head()) === undefined)
    return (await repository.run(['ls-files', '--cached', '-z', '--', ...only], { most: 1 })).stdout.length > 0
  const { code } = await repository.run(
    ['diff-index', '--cached', '--quiet', '--ignore-submodules=dirty', 'HEAD', '--', ...only],
    {
      anyCode: true,
    }
  )
  return code !== 0
}
