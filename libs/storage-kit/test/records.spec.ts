import { setImmediate as nextTurn } from 'node:timers/promises'
import { systemContext } from '@svc/core'
import { leaseBusy, storeConflict } from '@svc/storage-kit'
import { changeRecord, type RecordStore, tryAcquire } from '@svc/storage-kit/records'
import { expect } from 'chai'

const ctx = systemContext(new AbortController().signal)
const at = { collection: 'c', key: 'k' }

/** A store with one record; another writer changes it before the first batches, as often as `others` says. */
function storeWith(others: number) {
  const record = { version: 1, value: 1 }
  const store = {
    async get() {
      await nextTurn()
      return { key: 'k', ...record }
    },
    async batch([op]: readonly { readonly value: number; readonly ifVersion: number }[]) {
      if (others-- > 0) Object.assign(record, { version: record.version + 1, value: record.value + 10 })
      if (op!.ifVersion !== record.version) throw storeConflict(0, op!.ifVersion, record.version)
      Object.assign(record, { version: record.version + 1, value: op!.value })
      return { results: [record.version] }
    },
  }
  return { record, store: store as unknown as RecordStore }
}

describe('a change of a record', () => {
  it('begins again with the present value when another process has written meanwhile', async () => {
    const { record, store } = storeWith(2)
    const changed = await changeRecord(store, at, ({ value }) => Number(value) + 1, ctx)
    expect(changed).to.deep.equal({ version: 4, value: 22 })
    expect(record).to.deep.equal({ version: 4, value: 22 })
  })

  it('writes nothing without a value', async () => {
    const { record, store } = storeWith(0)
    expect(await changeRecord(store, at, () => undefined, ctx)).to.deep.include({ version: 1, value: 1 })
    expect(record.version).to.equal(1)
  })

  it('ends when its caller aborts', async () => {
    const { store } = storeWith(Number.POSITIVE_INFINITY)
    const signal = AbortSignal.timeout(20)
    const failed = await changeRecord(store, at, () => 1, systemContext(signal)).catch((error: Error) => error.name)
    expect(failed).to.equal('TimeoutError')
  })
})

describe('a lease that is acquired without waiting', () => {
  it('is undefined if another holder has it; other errors stay', async () => {
    const as = { holder: 'h', ttlMs: 1_000 }
    const acquire = (error?: Error) => async () => {
      if (error) throw error
      return { lease: 'l', fence: 7, expiresAt: 0 }
    }
    const of = (error?: Error) => tryAcquire({ acquire: acquire(error) }, 'l', as, ctx)
    expect(await of()).to.deep.include({ lease: 'l', fence: 7 })
    expect(await of(leaseBusy('l', 0))).to.equal(undefined)
    expect(await of(new Error('no')).catch((error: Error) => error.message)).to.equal('no')
  })
})
