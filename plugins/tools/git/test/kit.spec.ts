import { chmod, mkdir, symlink, writeFile } from 'node:fs/promises'
import { type ToolSamples, toolKit } from '@svc/testing'
import { sample, withGit } from './support/repository.ts'

/** What no tool takes, in whatever member it stands. */
const OUT: ToolSamples['bad'] = [
  ...['..', '/etc', 'leak', '/proc/self/root/etc', 'beside/../..'].map(repository => ({
    args: { repository },
    message: /outside/,
  })),
  { args: { repository: 'a\0b' }, message: /zero byte/ },
  { args: { repository: 'nowhere' }, message: /does not exist/ },
  { args: { repository: 'a.txt' }, message: /not a directory/ },
  { args: { repository: 'x'.repeat(4000) }, message: /too long/ },
  { args: { repository: '--upload-pack=x' }, message: /does not exist/ },
  { args: { repository: '' } },
]
const refs = (name: string): ToolSamples['bad'] =>
  ['--output=/tmp/x', '-p', 'nothing', 'HEAD..HEAD~1', 'HEAD:a.txt', 'a\nb', '^HEAD', '@{upstream}'].map(ref => ({
    args: { [name]: ref },
    message: /not a valid commit name|does not exist/,
  }))
const paths = (name: 'paths' | 'file', more: object = {}): ToolSamples['bad'] =>
  ['../x', '/etc/passwd', '/proc/self/root/x'].map(path => ({
    args: { ...more, [name]: name === 'file' ? path : [path] },
    message: /outside/,
  }))

const TOOLS: Record<string, ToolSamples> = {
  git_status: { good: [{ args: {} }, { args: { repository: '.', untracked: false } }], bad: OUT },
  git_diff: {
    good: [
      { args: {} },
      { args: { staged: true } },
      { args: { from: 'HEAD~1', to: 'HEAD', context: 0 } },
      { args: { paths: ['a.txt'] } },
    ],
    bad: [...OUT, ...refs('from'), ...refs('to'), ...paths('paths'), { args: { paths: [] } }],
  },
  git_log: {
    good: [{ args: {} }, { args: { from: 'main', limit: 1, skip: 1, paths: ['a.txt'] } }],
    bad: [...OUT, ...refs('from'), ...paths('paths'), { args: { limit: 0 } }],
  },
  git_show: {
    good: [{ args: {} }, { args: { commit: 'HEAD~1', file: 'a.txt' } }],
    bad: [...OUT, ...refs('commit'), ...paths('file'), { args: { file: 'nothing' }, message: /file "nothing" does not exist/ }],
  },
  git_commit: {
    good: [{ args: { message: 'said by the kit', paths: ['more.txt'] } }],
    bad: [
      { args: { message: ' \n ' }, message: /message is empty/ },
      ...OUT.map(item => ({ ...item, args: { message: 'x', ...item.args } })),
      ...paths('paths', { message: 'x' }),
      { args: { message: 'x', paths: ['nothing'] }, message: /not tracked/ },
      { args: { message: '' } },
      { args: {} },
    ],
  },
}

for (const [name, samples] of Object.entries(TOOLS))
  withGit(`${name}, by the tool kit`, () => {
    let written = 0
    const open = async (config: object = {}) => {
      const files = await sample(config)
      await mkdir(files.at('root', 'beside'))
      await writeFile(files.at('beside', 'x'), '')
      await symlink(files.at('beside'), files.at('root', 'leak'))
      const tool = files.tool(name)
      const call: typeof tool.call = async (args, ctx) => {
        // Each commit needs something to commit.
        if (args.message === 'said by the kit') await files.write('more.txt', `${++written}\n`)
        const again = await tool.call(args, ctx).catch(async (error: { code?: string }) => {
          if (error.code !== 'GIT_NOTHING' || args.message !== 'said by the kit') throw error
          await files.write('more.txt', `${++written}\n`)
          return tool.call({ ...args, paths: undefined, all: true }, ctx)
        })
        return again
      }
      return { name, tool: { ...tool, call }, close: files.close, files }
    }
    // A git that never ends, and starts another one that would outlive it.
    const hanging = async () => {
      const subject = await open()
      const { files } = subject
      await writeFile(files.at('beside', 'git'), '#!/bin/sh\nsleep 1000 &\nwait\n')
      await chmod(files.at('beside', 'git'), 0o755)
      process.env.PATH = `${files.at('beside')}:${process.env.PATH}`
      return subject
    }
    const slow = { args: samples.good[0]!.args }
    const concurrent = name === 'git_commit' ? 1 : 8
    for (const testCase of toolKit(open, { ...samples, concurrent }))
      if (testCase.skipped === undefined) it(testCase.title, testCase.run)
    for (const testCase of toolKit(hanging, { ...samples, slow }))
      if (testCase.title.includes('while it runs')) it(testCase.title, testCase.run)
  })
