/** An answer of the service as a file. */
import { useEffect, useState } from 'preact/hooks';

interface DownloadProps {
  readonly of: unknown;
  readonly file: string;
  readonly label: string;
}

export function Download({ of, file, label }: DownloadProps) {
  const [address, setAddress] = useState<string>();
  useEffect(() => {
    const made = URL.createObjectURL(new Blob([JSON.stringify(of, null, 2)], { type: 'application/json' }));
    setAddress(made);
    return () => URL.revokeObjectURL(made);
  }, [of]);
  return address === undefined ? null : (
    <a href={address} download={file}>
      {label}
    </a>
  );
}
