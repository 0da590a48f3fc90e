// Another program: locks the file, reports that, and holds it until the next message.
import { DatabaseSync } from 'node:sqlite'

const [path, mode] = process.argv.slice(2) as [string, string]
const db = new DatabaseSync(path)
if (mode === 'alone') db.exec('PRAGMA locking_mode = EXCLUSIVE')
db.exec('BEGIN EXCLUSIVE')
process.send!('locked')
process.once('message', () => {
  db.exec('COMMIT')
  db.close()
  process.send!('free')
  process.disconnect()
})
