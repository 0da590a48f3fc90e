import { definePlugin, shownPath } from '@svc/core'
import { Checks, Counts, JobKinds, ProtectedPaths, Store, StoreAdmin, StoreCounts, TextIndex } from '@svc/core/contracts'
import { BACKUP_KIND, backupsFolder, createBackupKind } from './backup-job.ts'
import { countsReason, createCheck, examine } from './check.ts'
import { config, fileOf } from './config.ts'
import { countsFile } from './counts-file.ts'
import { createSqliteStore } from './store.ts'
import { tryOut } from './try-out.ts'

/** The embedded store: one file, durable, shared by the processes of one machine. */
export default definePlugin({
  section: 'store',
  config,
  provides: Store,
  alsoProvides: [Counts, StoreCounts, TextIndex, StoreAdmin],
  async setup(scope) {
    const path = fileOf(scope.config)
    const busyMs = scope.config.busy_timeout_ms
    // A problem with the file fails the start; later it fails each request until it is fixed.
    await tryOut(path, busyMs, scope.signal)
    const countsAnew = (since: number) => {
      const reason = countsReason(since)
      if (reason) scope.log.warn({ file: shownPath(`${path}.counts`) }, reason)
    }
    const store = scope.use(createSqliteStore({ path, busyMs, mayMake: false, countsAnew }))
    const files = [path, `${path}-wal`, `${path}-shm`, countsFile(path), backupsFolder()]
    scope.add(ProtectedPaths, 'store', { paths: files, owner: 'the store of this server' })
    scope.add(Checks, 'database', { ...createCheck(store), examine: ctx => examine(path, ctx) })
    scope.add(JobKinds, BACKUP_KIND, createBackupKind(path))
    return store
  },
})
