import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync, type StatementSync } from 'node:sqlite'
import { fileURLToPath } from 'node:url'
import { expect } from 'chai'
import { createSession } from '../src/session.ts'
import { createSqliteStore, type SqliteStore } from '../src/store.ts'
import type { WriterTask } from '../src/wire.ts'
import { commitsIn } from './log-support.ts'
import { PROBED, SPACE, temporaryFolder, ctx } from './support.ts'
import { put } from './broken-files.ts'
import { skipBecause } from '../../../../test/support/needs.ts'

/** What scripts/test.mjs has built starts faster. */
const CONDITIONS = process.env.SVC_TEST_ENTRY ? [] : ['--conditions=svc-source']

const FULL = 2
const NORMAL = 1

/** A store on a file of its own, and how many commits some work took. */
async function opened() {
  const folder = await temporaryFolder()
  const path = join(folder.path, 'svc.db')
  const store: SqliteStore = createSqliteStore({ path })
  await store.open(SPACE, ctx)
  return {
    store,
    path,
    async commits(work: () => Promise<unknown>) {
      const before = commitsIn(path)
      await work()
      return commitsIn(path) - before
    },
    async [Symbol.asyncDispose]() {
      await store[Symbol.asyncDispose]()
      await folder[Symbol.asyncDispose]()
    },
  }
}

const many = (store: SqliteStore, count: number) =>
  Promise.all(Array.from({ length: count }, (_, at) => put(store, `k${at}`, at)))

/** What `PRAGMA synchronous` of the real connection was at each commit since this was last asked. */
function watchCommits() {
  const { prepare } = DatabaseSync.prototype
  const seen: unknown[] = []
  DatabaseSync.prototype.prepare = function (this: DatabaseSync, ...args: Parameters<typeof prepare>): StatementSync {
    const statement = prepare.apply(this, args)
    if (args[0] !== 'COMMIT') return statement
    const pragma = prepare.call(this, 'PRAGMA synchronous')
    const run = statement.run.bind(statement)
    return Object.assign(statement, {
      run() {
        seen.push(pragma.get()?.synchronous)
        return run()
      },
    })
  }
  return {
    take: () => seen.splice(0),
    [Symbol.dispose]() {
      DatabaseSync.prototype.prepare = prepare
    },
  }
}

/** Whether this machine lets us see the system calls of a process; what it prints then. */
function traced(file: string, folder: string): string | undefined {
  const program = [process.execPath, ...CONDITIONS, file, folder]
  const out = join(folder, 'calls')
  try {
    execFileSync('strace', ['-f', '-y', '-e', 'trace=fsync,fdatasync,mkdir,mkdirat', '-o', out, '--', ...program], {
      stdio: 'ignore',
    })
    return readFileSync(out, 'utf8')
  } catch {
    process.emitWarning('this machine lets no test see system calls: that a commit is really synced is not looked at')
    return undefined
  }
}

describe('what the store has acknowledged', () => {
  it('has waited for the disk: the connection that wrote it says so itself', async () => {
    await using host = await opened()
    expect(await host.store.probe(ctx)).to.deep.equal(PROBED)
    using raw = new DatabaseSync(host.path)
    expect(raw.prepare('PRAGMA journal_mode').get()).to.deep.include({ journal_mode: 'wal' })
  })

  it('is in the log by then, each write that waits for the last in a commit of its own', async () => {
    await using host = await opened()
    for (let at = 0; at < 10; at++) expect(await host.commits(() => put(host.store, `k${at}`, at))).to.equal(1)
  })

  it('shares its commit with all that was asked in the same turn', async () => {
    await using host = await opened()
    expect(await host.commits(() => many(host.store, 200))).to.equal(1)
  })

  it('shares its commit with all that gathered while another was under way', async () => {
    await using host = await opened()
    const commits = await host.commits(async () => {
      // long enough for the writer that all the others wait by the time it is done
      const waiting: Promise<unknown>[] = [put(host.store, 'large', 'x'.repeat(10_000_000))]
      for (let turn = 0; turn < 50; turn++) {
        waiting.push(put(host.store, `k${turn}`, turn))
        await new Promise(resolve => setImmediate(resolve))
      }
      await Promise.all(waiting)
    })
    // each turn travels by itself: without that it would be a commit a turn
    expect(commits).to.be.within(1, 10)
  })

  it('is synced where data, or the limit of fences, changed; leases alone are not', async () => {
    await using folder = await temporaryFolder()
    using commits = watchCommits()
    const session = createSession({ path: join(folder.path, 'svc.db'), busyMs: 0, mayMake: true, spaces: [] })
    const done = (...jobs: WriterTask[]) => {
      const { answers } = session.run(jobs)
      expect(
        answers.some(answer => 'code' in answer),
        JSON.stringify(answers)
      ).to.equal(false)
      return commits.take()
    }
    const write: WriterTask = ['batch', [['put', 'notes', 'k', '1', -1]], '', 0]
    const lease = (name: string): WriterTask => ['acquire', name, 'holder', 60_000]
    try {
      expect(done(['open', JSON.stringify(SPACE)])).to.deep.equal([FULL])
      expect(done(write)).to.deep.equal([FULL])
      expect(done(lease('first')), 'a connection begins with a new block of fences').to.deep.equal([FULL])
      expect(done(lease('second'))).to.deep.equal([NORMAL])
      expect(done(lease('third'), write)).to.deep.equal([FULL])
      expect(done(['release', 'third', 3])).to.deep.equal([NORMAL])
      const blocks = Array.from({ length: 1100 }, (_, at) => done(lease(`l${at}`))).flat()
      expect(
        blocks.filter(synced => synced === FULL),
        'one more block is begun'
      ).to.have.length(1)
    } finally {
      session.close()
    }
  })

  it('was synced by the system call itself, once for all that share a commit, before any answer', async function () {
    this.timeout(60_000)
    await using folder = await temporaryFolder()
    const calls = traced(fileURLToPath(new URL('./children/mark.ts', import.meta.url)), folder.path)
    if (calls === undefined) return skipBecause(this, 'strace is missing or may trace no process on this machine')
    const steps = calls.split(/\n.*mkdir(?:at)?\(.*\/(?=(?:opened|put|fifty|first-lease|next-lease|first-hit|hits)")/)
    const syncs = steps.map(step => step.match(/f(?:data)?sync\(\d+<[^>]*svc\.db-wal>/g)?.length ?? 0)
    const [opening, ...rest] = syncs
    expect(opening).to.be.at.least(1)
    // a put; fifty of one turn; the lease that begins a block; the next; a hit that makes the file of counts; fifty hits, one by one; the close, which may bring all to the file
    expect(rest.slice(0, 6)).to.deep.equal([1, 1, 1, 0, 0, 0])
    expect(steps[6]).not.to.match(/sync\(/)
  })
})
