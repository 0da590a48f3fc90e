import { byBytes, checkSize, cursorOf, endOf, hit, sortKey, storeConflict, storeInvalid, storeNewer } from '@svc/storage-kit'

/**
 * Records, log entries and counters.
 * @param {ReturnType<typeof import('./drawers.js').openDrawers>} drawers
 */
export function createRecords({ db, atOnce, clock }) {
  const sql = Object.fromEntries(Object.entries(STATEMENTS).map(([name, text]) => [name, db.prepare(text)]))
  return {
    /** @param {import('@svc/core/contracts').Space} space Its stored version; 0 if nothing is stored yet. */
    version: ({ name, version }) =>
      atOnce(() => {
        const stored = sql.version.get(name)?.version ?? 0
        if (stored > version) throw storeNewer(`the space "${name}"`, stored, version)
        if (stored === 0) sql.migrated.run(name, version)
        return stored
      }),
    get(collection, key) {
      const row = sql.record.get(collection, key)
      return row && recordOf(row)
    },
    range(collection, { reverse, limit }, { paths, span }) {
      const [low, high] = [byBytes(span.low), span.high === undefined ? undefined : byBytes(span.high)]
      const places = sql.records
        .all(collection)
        .map(row => ({ row, position: sortKey(paths, JSON.parse(row.value), row.key) }))
        .map(place => ({ ...place, at: byBytes(place.position) }))
        .filter(({ at }) => (span.behind ? at > low : at >= low) && (high === undefined || at < high))
        .sort((a, b) => (a.at < b.at === !reverse ? -1 : 1))
      const page = places.slice(0, limit)
      const records = page.map(({ row }) => recordOf(row))
      return places.length > limit ? { records, next: cursorOf(page.at(-1).position) } : { records }
    },
    read(log, id, { from, reverse, limit }) {
      const rows = reverse
        ? sql.back.all(log, id, from ?? Number.MAX_SAFE_INTEGER, limit)
        : sql.forth.all(log, id, from ?? 1, limit)
      return rows.map(({ seq, value }) => ({ seq, value: JSON.parse(value) }))
    },
    /** @param {readonly import('@svc/core/contracts').StoreOp[]} ops @param {() => void} first Runs in the same transaction; throws to prevent the write. */
    batch(ops, first) {
      const texts = textsOf(ops)
      return atOnce(() => {
        first()
        return ops.map((op, at) => STEPS[op.op](sql, op, at, texts[at]))
      })
    },
    count: (key, windows) =>
      atOnce(() => {
        const now = clock()
        sql.forget.run(now)
        const { counted, kept } = hit(JSON.parse(sql.kept.get(key)?.kept ?? '[]'), windows, now)
        if (kept.length) sql.keep.run(key, JSON.stringify(kept), endOf(kept))
        return counted
      }),
  }
}

const STATEMENTS = {
  version: 'SELECT version FROM spaces WHERE name = ?',
  migrated: 'INSERT OR REPLACE INTO spaces VALUES (?, ?)',
  record: 'SELECT key, version, value FROM records WHERE collection = ? AND key = ?',
  records: 'SELECT key, version, value FROM records WHERE collection = ?',
  put: 'INSERT OR REPLACE INTO records VALUES (?, ?, ?, ?)',
  delete: 'DELETE FROM records WHERE collection = ? AND key = ?',
  length: 'SELECT coalesce(max(seq), 0) AS length FROM entries WHERE log = ? AND id = ?',
  append: 'INSERT INTO entries VALUES (?, ?, ?, ?)',
  drop: 'DELETE FROM entries WHERE log = ? AND id = ?',
  forth: 'SELECT seq, value FROM entries WHERE log = ? AND id = ? AND seq >= ? ORDER BY seq LIMIT ?',
  back: 'SELECT seq, value FROM entries WHERE log = ? AND id = ? AND seq <= ? ORDER BY seq DESC LIMIT ?',
  forget: 'DELETE FROM counts WHERE ends <= ?',
  kept: 'SELECT kept FROM counts WHERE key = ?',
  keep: 'INSERT OR REPLACE INTO counts VALUES (?, ?, ?)',
}

/** Runs an operation of a batch and returns its result. */
const STEPS = {
  put(sql, { collection, key, ifVersion }, at, [text]) {
    const version = sql.record.get(collection, key)?.version ?? 0
    expect(at, ifVersion, version)
    sql.put.run(collection, key, version + 1, text)
    return version + 1
  },
  delete(sql, { collection, key, ifVersion }, at) {
    expect(at, ifVersion, sql.record.get(collection, key)?.version ?? 0)
    sql.delete.run(collection, key)
    return 0
  },
  append(sql, { log, id, ifLength }, at, texts) {
    const { length } = sql.length.get(log, id)
    expect(at, ifLength, length)
    for (const [index, text] of texts.entries()) sql.append.run(log, id, length + index + 1, text)
    return length + texts.length
  },
  drop(sql, { log, id }) {
    sql.drop.run(log, id)
    return 0
  },
  migrated(sql, { space, version }) {
    sql.migrated.run(space, version)
    return 0
  },
}

const expect = (op, expected, actual) => {
  if (expected !== undefined && expected !== actual) throw storeConflict(op, expected, actual)
}

const recordOf = ({ key, version, value }) => ({ key, version, value: JSON.parse(value) })

/** Serializes the values of all operations before the first write, so that an invalid value changes nothing. */
function textsOf(ops) {
  let sum = 0
  const sized = value => {
    const text = textOf(value)
    checkSize(text.length, (sum += text.length))
    return text
  }
  return ops.map(op => (op.op === 'put' ? [op.value] : (op.values ?? [])).map(sized))
}

function textOf(value) {
  try {
    const text = JSON.stringify(value)
    if (text !== undefined) return text
  } catch {
    throw storeInvalid('a value must be JSON that is not nested too deeply')
  }
  throw storeInvalid(`a value must be JSON, was of type ${typeof value}`)
}
