import { lstat, readlink, stat, readFile } from 'node:fs/promises'
import { dirname, resolve, relative } from 'node:path'
import { isFile } from './mount-points.ts'
import { type Shown, isWithin } from './paths.ts'
import { isSystem, SYSTEM_FOLDERS } from './program.ts'
import type { Protection } from './protection.ts'

/**
 * Files of `/etc` that programs need for libraries, names and time. Passwords, keys and settings of services are not shown. Each entry is a mount, and each
 * mount costs about one percent of a start.
 */
const ETC = 'ld.so.cache alternatives os-release passwd group nsswitch.conf localtime timezone mime.types'
/** Further files for processes with network. */
const NETWORK =
  'resolv.conf hosts host.conf gai.conf protocols services ' +
  'ssl/certs ssl/openssl.cnf ssl/cert.pem pki/tls/certs pki/ca-trust/extracted ca-certificates crypto-policies'

/** The bubblewrap of this machine, and its arguments that show the system. */
export interface Bubblewrap {
  readonly file: string
  readonly version: string
  /** True for 0.8 and newer: it can limit folders in memory and forbid further user namespaces. */
  readonly isModern: boolean
  readonly system: readonly string[]
  readonly network: readonly string[]
}

/** What one process can see and do. */
export interface ProcessView extends Shown {
  readonly network: boolean
  readonly protection: Protection
  readonly links: readonly (readonly [at: string, to: string])[]
  /** Folders within the system's that are covered by an empty folder. */
  readonly hidden: readonly string[]
  readonly cwd: string
  /** Size of `/tmp` in bytes. */
  readonly tmpBytes: number
  readonly unset: readonly string[]
  /** Variables that bubblewrap sets inside: outside, the loader would obey them. */
  readonly set: Readonly<Record<string, string>>
}

/** Splits a command line. */
const words = (line: string) => line.split(' ')
const inEtc = (names: string) => words(names).map(name => `/etc/${name}`)

const SHARED_MEMORY = 67_108_864
/** The smallest size of a folder in memory: one page. */
const EMPTY_BYTES = 4096

/** Returns the command line of bubblewrap, without the program. */
export function lineOf(bwrap: Bubblewrap, view: ProcessView): string[] {
  const sized = (bytes: number, folder: string) => [...(bwrap.isModern ? ['--size', String(bytes)] : []), '--tmpfs', folder]
  const empty = (folder: string) => [...sized(EMPTY_BYTES, folder), '--remount-ro', folder]
  return [
    bwrap.file,
    ...words('--unshare-user --unshare-ipc --unshare-pid --unshare-uts --unshare-cgroup-try --hostname sandbox'),
    ...(view.network ? [] : ['--unshare-net']),
    ...(bwrap.isModern ? ['--disable-userns'] : []),
    // with its capabilities, a process of a root host could remount read-only mounts as writable
    ...words('--die-with-parent --new-session --cap-drop ALL'),
    ...bwrap.system,
    ...(view.network ? bwrap.network : []),
    ...view.hidden.flatMap(empty),
    ...words('--proc /proc --dev /dev'),
    ...sized(Math.min(SHARED_MEMORY, view.tmpBytes), '/dev/shm'),
    ...sized(view.tmpBytes, '/tmp'),
    ...mounts(view, empty),
    ...view.links.flatMap(([at, to]) => ['--symlink', to, at]),
    // root owns the kernel settings in /proc/sys, and bubblewrap 0.8 does not cover them for root
    ...words('--remount-ro /proc --remount-ro /dev --remount-ro / --chdir'),
    view.cwd,
    ...view.unset.flatMap(name => ['--unsetenv', name]),
    ...Object.entries(view.set).flatMap(([name, value]) => ['--setenv', name, value]),
    '--',
  ]
}

/** Orders mounts by path length: a folder is mounted before those within it. */
function mounts({ read, write, protection }: ProcessView, empty: (folder: string) => string[]): string[] {
  const bind = (word: string) => (path: string) => [path, [word, path, path]] as const
  return [
    ...read.map(bind('--ro-bind')),
    ...[...write, ...protection.anchors].map(bind('--bind')),
    ...protection.read.map(bind('--ro-bind')),
    ...protection.absent.map(path => [path, isFile(path) ? ['--ro-bind', path, path] : empty(path)] as const),
  ]
    .toSorted(([item], [other]) => item.length - other.length)
    .flatMap(([, words]) => words)
}

/** Returns the arguments that show the system, and those for the network. */
export async function systemWords(): Promise<Pick<Bubblewrap, 'system' | 'network'>> {
  const [folders, etc, network] = await Promise.all(
    [SYSTEM_FOLDERS, inEtc(ETC), inEtc(NETWORK)].map(all => Promise.all(all.map(shown)))
  )
  return { system: [...folders!, ...etc!].flat(), network: network!.flat() }
}

async function shown(path: string): Promise<string[]> {
  const found = await lstat(path).catch(() => undefined)
  if (found === undefined || !(await stat(path).catch(() => undefined))) return []
  // `/bin` is usually a link to `usr/bin`, and the time zone a link into `/usr`; for any other link its target is mounted
  const to = found.isSymbolicLink() ? await readlink(path) : undefined
  if (to !== undefined && (SYSTEM_FOLDERS.includes(path) || isSystem(resolve(dirname(path), to)))) return ['--symlink', to, path]
  return ['--ro-bind', path, path]
}

/** One line of `/proc/self/mountinfo`: file system, mounted folder, mount point. Paths are escaped as the kernel does. */
interface Mount {
  readonly device: string
  readonly root: string
  readonly at: string
}

/** Mounts of the kernel and of bubblewrap in `/proc` and `/dev`. */
const [IN_PROC, IN_DEV] = ['sys sysrq-trigger irq bus', 'null zero full random urandom tty pts console shm mqueue']
const pathsIn = (folder: string, names: string) => names.split(' ').map(name => `${folder}/${name}`)
const OWN_MOUNTS = ['/', ...pathsIn('/proc', IN_PROC), ...pathsIn('/dev', IN_DEV)]

/** A shell script that compares the mounts inside with the expected ones, and runs the program only if they match. It starts no other program. */
const VERIFY = `
nl='
' seen=$nl bound=$1 other=$2 inner=$3
shift 3
while read -r _ _ device root at _; do
  case $inner in *"$nl$device $root $at$nl"*) continue ;; esac
  case $seen in *"$nl$at$nl"*) bad=1 ;; esac
  case $bound$other in *"$nl$device $root $at$nl"* | *"$nl$at$nl"*) ;; *) bad=1 ;; esac
  seen=$seen$at$nl
done < /proc/self/mountinfo
[ -z "$bad" ] && exec "$@"
echo 'svc: a folder was replaced while the sandbox started; the program did not run' >&2
exit 126`

/**
 * Returns arguments that go before the program and verify the mounts. bubblewrap follows links. Another process with write access can replace a folder by a
 * link between the check and the mount. Then the sandbox would show, or open for writing, another folder of the host. So the mounts are compared with the
 * expected ones before the program runs. `line` is the command line of bubblewrap, `write` the writable folders.
 */
export async function verifying(line: readonly string[], write: readonly string[]): Promise<string[]> {
  const host = mountsIn(await readFile('/proc/self/mountinfo', 'utf8'))
  const bound: string[] = []
  const other = [...OWN_MOUNTS]
  const sources: string[] = []
  line.slice(0, line.indexOf('--')).forEach((word, at) => {
    const [first, second] = [line[at + 1]!, line[at + 2]!]
    if (/^--(ro-)?bind$/.test(word)) {
      bound.push(expected(host, first, second))
      sources.push(first)
    } else if (/^--(tmpfs|proc|dev)$/.test(word)) other.push(escaped(first))
  })
  // bwrap also mounts the host's mounts below a folder, repeatedly if folders in it are bound too
  const below = host.filter(({ at }) => sources.some(source => at !== escaped(source) && isWithin(at, escaped(source))))
  const isWritable = ({ at }: Mount) => write.some(folder => isWithin(at, escaped(folder)))
  const inner = below.filter(isWritable).map(({ device, root, at }) => `${device} ${root} ${at}`)
  const apart = below.filter(mount => !isWritable(mount)).map(({ at }) => at)
  return ['/bin/sh', '-c', VERIFY, 'sh', listOf(bound), listOf([...other, ...apart]), listOf(inner)]
}

const listOf = (all: readonly string[]) => `\n${all.map(item => `${item}\n`).join('')}`

function mountsIn(text: string): Mount[] {
  return text
    .trimEnd()
    .split('\n')
    .map(line => {
      const [, , device = '', root = '', at = ''] = line.split(' ')
      return { device, root, at }
    })
}

/** The expected line of a folder of the host after it is mounted. */
function expected(host: readonly Mount[], source: string, place: string): string {
  const path = escaped(source)
  const around = host.filter(({ at }) => isWithin(path, at)).toSorted((mount, other) => mount.at.length - other.at.length)
  const { device, root, at } = around.at(-1)!
  const inner = relative(at, path)
  return `${device} ${inner === '' ? root : `${root === '/' ? '' : root}/${inner}`} ${escaped(place)}`
}

/** The kernel writes these four characters as octal numbers. */
const escaped = (path: string) =>
  path.replace(/[ \t\n\\]/g, character => `\\${character.charCodeAt(0).toString(8).padStart(3, '0')}`)
