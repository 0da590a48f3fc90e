import { createSemaphore } from '@svc/plugin-kit'
import { definePlugin, systemContext } from '@svc/core'
import { ProtectedPaths, Tools, Workplace } from '@svc/core/contracts'
import { createLocks, openRoots, rootProblems } from '@svc/safe-fs'
import { createGitCommit } from './commit.ts'
import { createGitDiff } from './diff.ts'
import { createGitLog } from './log.ts'
import { gitConfig } from './settings.ts'
import { createGitShow } from './show.ts'
import { createGitStatus } from './status.ts'

export default definePlugin({
  section: 'tools.git',
  config: gitConfig,
  check: ({ roots }) => rootProblems(roots, 'tools.git.roots'),
  requires: { protectedPaths: ProtectedPaths },
  optional: { workplace: Workplace },
  async setup(scope, { protectedPaths, workplace }) {
    const folders = scope.config.roots ?? (await workplace?.roots(systemContext(scope.signal))) ?? ['.']
    const semaphore = scope.use(createSemaphore({ places: 4, waiting: 512, waitingEach: 256, waitMs: scope.config.timeout_ms }))
    const gitContext = { roots: await openRoots(folders, 'tools.git.roots', { protectedPaths }), config: scope.config, semaphore }
    scope.add(Tools, 'git_status', createGitStatus(gitContext))
    scope.add(Tools, 'git_diff', createGitDiff(gitContext))
    scope.add(Tools, 'git_log', createGitLog(gitContext))
    scope.add(Tools, 'git_show', createGitShow(gitContext))
    scope.add(Tools, 'git_commit', createGitCommit(gitContext, createLocks()))
  },
})

export type { GitConfig } from './settings.ts'
