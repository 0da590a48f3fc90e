import type { DatabaseSync } from 'node:sqlite'
import { expect } from './trouble.ts'
import { UNASKED } from './wire.ts'

/** The streams of all logs, as the writer changes them inside a transaction. */
export interface Entries {
  /** The seq of the last entry then. */
  append(at: number, log: number, id: string, ifLength: number, texts: readonly string[]): number
  drop(log: number, id: string): number
  /** The numbers of the streams that were appended to since this was last asked. */
  takeStreams(): number[]
}

/** Prepares the statements of one connection. */
export function createEntries(db: DatabaseSync): Entries {
  const s = statements(db)
  let streams: number[] = []

  const begin = (log: number, id: string, count: number) => {
    const { changes, lastInsertRowid } = s.begin.run(log, id, count)
    return changes === 0 ? undefined : { stream: Number(lastInsertRowid), end: count }
  }
  const lengthen = (log: number, id: string, count: number, ifLength: number) => {
    const row = ifLength === UNASKED ? s.lengthen.get(count, log, id) : s.lengthenIf.get(count, log, id, ifLength)
    return row && { stream: Number(row.id), end: Number(row.length) }
  }
  const lengthOf = (log: number, id: string) => Number(s.find.get(log, id)?.length ?? 0)

  return {
    append(at, log, id, ifLength, texts) {
      const count = texts.length
      const room =
        count === 0
          ? undefined
          : ((ifLength > 0 ? undefined : begin(log, id, count)) ??
            (ifLength === 0 ? undefined : lengthen(log, id, count, ifLength)))
      if (!room) {
        const length = lengthOf(log, id)
        expect(at, ifLength, length)
        return length
      }
      const { stream, end } = room
      for (let i = 0; i < count; i++) s.append.run(stream, end - count + i + 1, texts[i]!)
      streams.push(stream)
      return end
    },
    drop(log, id) {
      const stream = s.find.get(log, id)?.id
      if (stream === undefined) return 0
      s.dropEntries.run(stream)
      s.dropStream.run(stream)
      return 0
    },
    takeStreams() {
      const were = streams
      streams = []
      return were
    },
  }
}

const statements = (db: DatabaseSync) => ({
  find: db.prepare('SELECT id, length FROM streams WHERE log = ? AND name = ?'),
  begin: db.prepare('INSERT INTO streams(log, name, length) VALUES (?, ?, ?) ON CONFLICT DO NOTHING'),
  lengthen: db.prepare('UPDATE streams SET length = length + ? WHERE log = ? AND name = ? RETURNING id, length'),
  lengthenIf: db.prepare('UPDATE streams SET length = length + ? WHERE log = ? AND name = ? AND length = ? RETURNING id, length'),
  append: db.prepare('INSERT INTO entries(id, value) VALUES ((? << 32) | ?, ?)'),
  dropEntries: db.prepare('DELETE FROM entries WHERE id > (?1 << 32) AND id < ((?1 + 1) << 32)'),
  dropStream: db.prepare('DELETE FROM streams WHERE id = ?'),
})
