import { Menu as BaseMenu } from '@base-ui/react/menu'
import { useEffect, useRef, useState } from 'react'
import { useCover } from './frame-guard.ts'
import { MORE_CLASS, MoreIcon, type MoreProps } from './more.tsx'

/**
 * A menu that is open from the beginning: it is loaded when it is first wanted. What was chosen happens when the menu has gone and its
 * button has the focus again, so that a dialog gives the focus back to it.
 */
export function Menu({ label, items }: MoreProps) {
  const trigger = useRef<HTMLButtonElement>(null)
  const chosen = useRef<() => void>(undefined)
  const [isOpen, setOpen] = useState(false)
  useCover(isOpen)
  useEffect(() => {
    // as with a key: the first item has the focus
    trigger.current?.focus()
    trigger.current?.click()
  }, [])
  const act = (open: boolean) => {
    if (open) return
    chosen.current?.()
    chosen.current = undefined
  }
  return (
    <BaseMenu.Root open={isOpen} onOpenChange={setOpen} onOpenChangeComplete={act}>
      <BaseMenu.Trigger ref={trigger} className={MORE_CLASS} aria-label={label}>
        <MoreIcon />
      </BaseMenu.Trigger>
      <BaseMenu.Portal>
        <BaseMenu.Positioner className="popup-place" align="end" sideOffset={4}>
          <BaseMenu.Popup className="popup">
            {items.map(({ name, isBad = false, act: choose }) => (
              <BaseMenu.Item
                key={name}
                className={isBad ? 'popup-item bad' : 'popup-item'}
                onClick={() => {
                  chosen.current = choose
                }}
              >
                {name}
              </BaseMenu.Item>
            ))}
          </BaseMenu.Popup>
        </BaseMenu.Positioner>
      </BaseMenu.Portal>
    </BaseMenu.Root>
  )
}
