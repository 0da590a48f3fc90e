import type { Tool, ToolResult } from '@svc/core/contracts'
import { answerOf, objectOf, toolOf } from '@svc/plugin-kit'
import { CHANGES, differenceOf, notesOf, describeChanges, wholeText } from './changes.ts'
import { COMMIT, FORMAT, parseCommits, shownCommit } from './log.ts'
import { isBinary, noFile } from './errors.ts'
import { type GitContext, inRepository, type Repository } from './repository.ts'
import { COUNT, FLAG, parameters, ref, TEXT } from './shapes.ts'

/** Creates `git_show`, which shows a commit with its changes, or a file at a commit. */
export function createGitShow(gitContext: GitContext): Tool {
  return toolOf<Record<'repository' | 'commit' | 'file', string | undefined>>({
    description: `Shows a commit of a git repository: its message, and its changes as a patch. With file, shows the content of that file at the commit. ${gitContext.roots.words}`,
    category: 'git',
    effects: ['read'],
    workplace: true,
    parameters: parameters({
      commit: ref('a branch, a tag, a hash, HEAD~1; default HEAD'),
      file: { type: 'string', minLength: 1, maxLength: 4096, description: 'file to show' },
    }),
    result: objectOf(
      {
        repository: TEXT,
        ...COMMIT,
        files: CHANGES,
        patch: TEXT,
        file: TEXT,
        content: TEXT,
        size: { ...COUNT, description: 'size of the whole file in bytes' },
        truncated: FLAG,
      },
      ['files', 'patch', 'file', 'content', 'size']
    ),
    async call({ repository: path, commit = 'HEAD', file }, ctx) {
      return inRepository(gitContext, path, ctx, async repository => {
        const hash = await repository.commit(commit)
        const options = ['-z', FORMAT, '--no-mailmap', '--no-show-signature', '--max-count=1']
        const { stdout } = await repository.run(['log', ...options, hash, '--'])
        const [found] = parseCommits(stdout.toString())
        const facts = { repository: repository.shown, ...found! }
        if (file !== undefined) return showFile(repository, facts, commit, file)
        const limits = { context: 3, most: gitContext.config.max_entries }
        const difference = await differenceOf(
          repository,
          ['show', '--format=', '--diff-merges=first-parent'],
          [hash, '--'],
          limits
        )
        const { files, patch, truncated, more } = difference
        return answerOf([...shownCommit(found!), patch, ...notesOf(difference)], {
          ...facts,
          files: describeChanges(repository, files),
          patch,
          truncated: truncated || more,
        })
      })
    },
  })
}

async function showFile(
  repository: Repository,
  facts: { readonly commit: string; readonly [key: string]: string | string[] },
  ref: string,
  file: string
): Promise<ToolResult> {
  const [path] = await repository.paths([file])
  const object = `${facts.commit}:${path}`
  const kind = await repository.run(['cat-file', '-t', object], { anyCode: true })
  if (kind.code !== 0 || kind.stdout.toString().trim() !== 'blob') throw noFile(file, ref)
  const size = Number((await repository.run(['cat-file', '-s', object])).stdout.toString())
  const { stdout, truncated } = await repository.run(['cat-file', 'blob', object])
  if (stdout.includes(0)) throw isBinary(file)
  const content = wholeText(stdout, truncated)
  const note = truncated ? [`[Truncated: the file has ${size} bytes; these are the first ${Buffer.byteLength(content)}.]`] : []
  return answerOf([content, ...note], { ...facts, file: repository.displayPath(path!), content, size, truncated })
}
