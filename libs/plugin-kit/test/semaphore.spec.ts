import { expect } from 'chai'
import { createSemaphore } from '../src/index.ts'

const { signal } = new AbortController()

const failureOf = (task: Promise<unknown>): Promise<Error> =>
  task.then(
    () => Promise.reject(new Error('it did not fail')),
    (error: Error) => error
  )

describe('createSemaphore', () => {
  it('gives a place at once while one is free, in total and for the key', () => {
    const semaphore = createSemaphore({ places: 2, placesEach: 1, waiting: 9 })
    const first = semaphore.take('a', signal) as Disposable
    expect(semaphore.take('a', signal)).to.be.instanceOf(Promise)
    expect(semaphore.take('b', signal)).to.have.property(Symbol.dispose)
    expect(semaphore.take('c', signal)).to.be.instanceOf(Promise)
    first[Symbol.dispose]()
  })

  it('lets keys take turns, and runs the tasks of a key in order', async () => {
    const semaphore = createSemaphore({ places: 1, waiting: 9 })
    const ran: string[] = []
    const work = async (key: string, name: string) => {
      using _ = await semaphore.take(key, signal)
      ran.push(name)
    }
    const first = (await semaphore.take('z', signal)) as Disposable
    const all = [work('a', 'a1'), work('a', 'a2'), work('a', 'a3'), work('b', 'b1')]
    first[Symbol.dispose]()
    await Promise.all(all)
    expect(ran).to.deep.equal(['a1', 'b1', 'a2', 'a3'])
  })

  it('skips a key whose places are taken', async () => {
    const semaphore = createSemaphore({ places: 2, placesEach: 1, waiting: 9 })
    const a = semaphore.take('a', signal) as Disposable
    const b = semaphore.take('b', signal) as Disposable
    const [again, other] = [semaphore.take('a', signal), semaphore.take('c', signal)]
    b[Symbol.dispose]()
    using _ = await other
    let isIn = false
    void Promise.resolve(again).then(() => (isIn = true))
    await new Promise(resolve => setImmediate(resolve))
    expect(isIn).to.equal(false)
    a[Symbol.dispose]()
    using __ = await again
  })

  it('rejects too many tasks, a task that waits too long, and an aborted task', async () => {
    const semaphore = createSemaphore({ places: 1, waiting: 2, waitingEach: 1, waitMs: 10 })
    using _ = semaphore.take('a', signal) as Disposable
    const late = failureOf(Promise.resolve(semaphore.take('a', signal)))
    expect(() => semaphore.take('a', signal)).to.throw('1 tasks are already waiting')
    const leaving = new AbortController()
    const aborted = failureOf(Promise.resolve(semaphore.take('b', leaving.signal)))
    expect(() => semaphore.take('c', signal)).to.throw('2 tasks')
    leaving.abort(new Error('left'))
    expect((await aborted).message).to.equal('left')
    expect(await late).to.include({ code: 'WORK_BUSY' })
  })

  it('uses a given error, and rejects all tasks after it is closed', async () => {
    const semaphore = createSemaphore({ places: 1, waiting: 1, busy: count => new Error(`${count} wait`) })
    using _ = semaphore.take('a', signal) as Disposable
    const waits = failureOf(Promise.resolve(semaphore.take('a', signal)))
    expect(() => semaphore.take('b', signal)).to.throw('1 wait')
    semaphore[Symbol.dispose]()
    expect(await waits).to.include({ code: 'WORK_CLOSED' })
    expect(() => semaphore.take('c', signal)).to.throw('the worker pool was closed')
  })

  it('frees a place once, even if it is disposed of twice', () => {
    const semaphore = createSemaphore({ places: 1, waiting: 0 })
    const place = semaphore.take('a', signal) as Disposable
    place[Symbol.dispose]()
    place[Symbol.dispose]()
    using _ = semaphore.take('a', signal) as Disposable
    expect(() => semaphore.take('a', signal)).to.throw('0 tasks')
  })
})
