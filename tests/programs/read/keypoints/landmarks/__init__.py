"""Landmarks of stick figures: heat maps, soft arg-max, hidden joints.

    python -m landmarks.train --epochs 6
"""
