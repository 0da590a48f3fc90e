import { execFile } from 'node:child_process'
import { chmod, cp, mkdir, mkdtemp, realpath, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { systemContext } from '@svc/core'
import { type Tool, Tools } from '@svc/core/contracts'
import { testHost } from '@svc/testing'
import { expect } from 'chai'
import { describeWith } from '../../../../../test/support/needs.ts'

/** A group of tests that need git. Without git, they are skipped with the reason. */
export const withGit = (title: string, cases: () => void) =>
  describeWith('git', title, () => {
    after(dropMade)
    cases()
  })

type Args = Parameters<Tool['call']>[0]

/** Starts the plugin on a root with a repository and a folder beside it. The only configured author is "Ann". */
export async function openGit(config: object = {}, inner = '.') {
  const folder = await realpath(await mkdtemp(join(tmpdir(), 'svc-git-')))
  const at = (...parts: string[]) => join(folder, ...parts)
  for (const item of ['root', 'beside', 'home']) await mkdir(at(item))
  await mkdir(at('root', inner), { recursive: true })
  await writeFile(at('home', '.gitconfig'), '[user]\n\tname = Ann\n\temail = ann@example.org\n[init]\n\tdefaultBranch = main\n')
  const before = { ...process.env }
  process.env.HOME = at('home')
  delete process.env.XDG_CONFIG_HOME
  const env = { PATH: process.env.PATH, HOME: at('home') }
  const git = async (...args: string[]) => (await promisify(execFile)('git', args, { cwd: at('root', inner), env })).stdout.trim()
  const write = async (path: string, text: string | Buffer) => {
    await mkdir(dirname(at('root', inner, path)), { recursive: true })
    await writeFile(at('root', inner, path), text)
  }
  const settings = { tools: { git: { roots: [at('root')], ...config } } }
  const host = await testHost([new URL('../..', import.meta.url)], { config: settings })
  const ctx = systemContext(new AbortController().signal)
  const tool = (name: string) => host.slot(Tools).get(name)!
  const call = (name: string) => async (args: Args) => (await tool(name).call(args, ctx)).structured as Record<string, unknown>
  const close = async () => {
    await host.close()
    process.env.PATH = before.PATH
    process.env.HOME = before.HOME
    if (before.XDG_CONFIG_HOME !== undefined) process.env.XDG_CONFIG_HOME = before.XDG_CONFIG_HOME
    await rm(folder, { recursive: true, force: true })
  }
  const tools = {
    status: call('git_status'),
    diff: call('git_diff'),
    log: call('git_log'),
    show: call('git_show'),
    commit: call('git_commit'),
  }
  return { at, git, write, tool, ctx, ...tools, close, [Symbol.asyncDispose]: close }
}

/** The same with two commits, and a change of each kind. The repository is created once, then copied. */
export async function sample(config: object = {}) {
  const files = await openGit(config)
  made ??= make()
  await cp(await made, files.at('root'), { recursive: true })
  await files.git('status', '--porcelain') // git also compares file times
  return files
}

let made: Promise<string> | undefined

async function make(): Promise<string> {
  await using files = await openGit()
  await files.git('init', '--quiet')
  await files.write('a.txt', 'one\ntwo\n')
  await files.write('old name.txt', 'a text that is long enough\nto be known again\n')
  await files.write('gone.txt', 'gone')
  await files.git('add', '.')
  await files.git('commit', '--quiet', '-m', 'first')
  await files.write('a.txt', 'one\ntwo\nthree\n')
  await files.git('commit', '--quiet', '-am', 'second\n\nwith a body')
  await files.write('a.txt', 'one\n2\nthree\n')
  await files.write('ö new.txt', 'new')
  await files.git('mv', 'old name.txt', 'new name.txt')
  await files.git('rm', '--quiet', 'gone.txt')
  const kept = await mkdtemp(join(tmpdir(), 'svc-git-made-'))
  await cp(files.at('root'), kept, { recursive: true })
  return kept
}

async function dropMade(): Promise<void> {
  const folder = await made
  made = undefined
  if (folder !== undefined) await rm(folder, { recursive: true, force: true })
}

/** A program that writes a file when it runs. */
export async function marker(files: Awaited<ReturnType<typeof openGit>>) {
  const program = files.at('beside', 'program')
  await writeFile(program, `#!/bin/sh\necho "$0" "$@" >> '${files.at('beside', 'mark')}'\ncat\n`)
  await chmod(program, 0o755)
  return program
}

export const refusal = (work: Promise<unknown>): Promise<{ code?: string; message: string; hint?: string }> =>
  work.then(
    () => expect.fail('it was not refused'),
    (error: Error) => error
  )

/** The path of a program. */
export const which = async (program: string) => (await promisify(execFile)('sh', ['-c', `command -v ${program}`])).stdout.trim()
