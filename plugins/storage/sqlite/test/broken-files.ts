import { execFileSync, fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync } from 'node:fs'
import type { SvcError } from '@svc/core'
import type { Store } from '@svc/core/contracts'
import { expect } from 'chai'
import { SPACE, ctx } from './support.ts'

/** What scripts/test.mjs has built starts faster. */
const CONDITIONS = process.env.SVC_TEST_ENTRY ? [] : ['--conditions=svc-source']

export const put = (store: Store, key: string, value: string | number) =>
  store.batch([{ op: 'put', collection: 'notes', key, value }], {}, ctx)
export const errorOf = async (work: Promise<unknown>): Promise<SvcError> => {
  const nothing = Symbol()
  const error = await work.then(() => nothing).catch((thrown: SvcError) => thrown)
  if (error === nothing) throw new Error('it did not fail')
  return error as SvcError
}

/** Expects an error with a hint and without a path. */
export async function unavailable(work: Promise<unknown>, folder: string, reason: RegExp): Promise<void> {
  const error = await errorOf(work)
  expect(error.code, error.stack).to.equal('STORE_UNAVAILABLE')
  expect(error.message).to.match(reason)
  expect(error.message).not.to.include(folder)
  expect(error.hint).to.be.a('string').and.not.include(folder)
}

/** Mounts a small file system of its own; says why this machine lets no test do so. */
export function smallDisk(path: string, mebibytes = 1): string | undefined {
  mkdirSync(path)
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${mebibytes}m`, 'tmpfs', path], { stdio: 'ignore' })
    return undefined
  } catch {
    return 'this machine lets no test mount a small disk'
  }
}

/**
 * Puts a folder in the place of another, for reading only; `removeDisk` takes it away, though files of it are open. It is made
 * read-only before it is there: a server that opens a file for writing in between would prevent it.
 */
export function coverReadOnly(path: string, folder: string): void {
  execFileSync('mount', ['--bind', folder, folder])
  try {
    execFileSync('mount', ['-o', 'remount,bind,ro', folder])
    execFileSync('mount', ['--bind', folder, path])
  } finally {
    removeDisk(folder)
  }
}

export const removeDisk = (path: string) => void execFileSync('umount', ['--lazy', path])

const CHILDREN = new URL('./children/', import.meta.url)
const child = (name: string, args: readonly string[]) => fork(new URL(name, CHILDREN), [...args], { execArgv: [...CONDITIONS] })

/** Another process that holds the file: `alone`: no other process can even open it. */
export async function lock(path: string, mode: 'shared' | 'alone' = 'shared'): Promise<{ free(): Promise<void> } & Disposable> {
  const locker = child('locker.ts', [path, mode])
  const ended = once(locker, 'exit').then(([code, signal]) => {
    throw new Error(`the process that holds the file ended with ${code ?? signal}`)
  })
  ended.catch(() => {})
  const answered = () => Promise.race([once(locker, 'message'), ended])
  await answered()
  return {
    async free() {
      const freed = answered()
      locker.send('free')
      await freed
    },
    [Symbol.dispose]: () => void locker.kill('SIGKILL'),
  }
}

/** A process of its own on the file, with this one's rights or without special ones. */
export async function servant(path: string, rights: 'same' | 'none') {
  const process = child('obey.ts', [path, JSON.stringify(SPACE), rights])
  const waiting = new Map<number, PromiseWithResolvers<unknown>>()
  let last = 0
  await once(process, 'message')
  process.on('message', ({ id, value, error }: { id: number; value: unknown; error?: Error }) => {
    if (error) waiting.get(id)?.reject(error)
    else waiting.get(id)?.resolve(value)
  })
  const ask = (call: string, key?: string, value?: string) => {
    const answer = Promise.withResolvers<unknown>()
    waiting.set(++last, answer)
    process.send({ id: last, call, key, value })
    return answer.promise
  }
  return { pid: process.pid!, ask, [Symbol.dispose]: () => void process.kill('SIGKILL') }
}
